"""CDC formats: where an event of each tool keeps operation, key, rows, position and time, as Spark SQL expressions.

`message` is the description, `format_registry` finds it by name; `row_images` reads rows by it, `columnar` those of
files that have types; `source_types` maps the database's types to Spark's.
"""
