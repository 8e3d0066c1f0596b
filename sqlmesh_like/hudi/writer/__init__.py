"""Commits to copy-on-write tables on this machine without a JVM.

`table_support` says whether a table can be written here. `upsert` commits rows: `bucket_hash` and `partition_names`
assign them to file groups, `file_merge` rewrites each file, `instant` opens and completes the commit on the timeline,
`commit_encoding` encodes the commit's own file. Left to Spark: merge-on-read tables, changes of columns, first loads,
and tables that others write.
"""
