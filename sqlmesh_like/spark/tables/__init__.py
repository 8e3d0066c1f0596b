"""One Hudi table by Spark's writer: `hudi_table` holds the write options, each with its reason.

`table_swap` replaces a table by two renames; `catalog_sync` makes it known by name; `cleaner` and `compaction` call the
table services. What is written is decided by `writer` and by `cdc`.
"""
