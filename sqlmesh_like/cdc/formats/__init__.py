"""CDC formats: where each tool's events have operation, key, rows, position and time, as Spark SQL expressions.

`message` is the description, `format_registry` finds it by name; `row_images` reads rows with it, `columnar` those of
typed files; `source_types` maps the database's types to Spark's.
"""
