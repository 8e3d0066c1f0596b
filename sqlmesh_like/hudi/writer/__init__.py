"""Commits to copy-on-write tables of this machine without a JVM.

`table_support` says whether a table can be written here. `upsert` takes the rows of one commit; `bucket_hash` and
`file_groups` say which files they belong to, `file_merge` rewrites each file, `instant` opens and closes the commit
on the timeline, `commit_encoding` is the commit's own file. What is left to Spark: merge-on-read tables, changes of
columns, first loads, and tables that others write.
"""
