"""Functions of the project: `functions:` of properties YAML and the files with their expressions.

`declarations` has the values and `reading` joins entries and files; `render.functions` writes the expressions into
queries.
"""
