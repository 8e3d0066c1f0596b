"""Which keys the files of a project may have: one declaration for the loader, `sml schema` and docs/reference.md.

`shape` defines declarations, `value_types` the values that keys accept; a module for each kind of file declares its
keys; `json_schema` writes them for editors. The loader checks every entry by `Shape.check` or reads it by
`Shape.read`.
"""
