"""One Hudi table by Spark's writer: `hudi_table` holds the write options, each with its reason.

`catalog_sync` registers it by name; `cleaner` and `compaction` call the table services. `writer` and `cdc` decide what
is written.
"""
