"""Rows that must be in no file any more. `row_match` says which rows, `delete_rows` commits their removal without a
log of it, `old_versions` removes the files of earlier commits, `byte_search` looks for what may still have them, in
`searched_files` of this machine or of a store.

Needs no JVM. In tables that are merge-on-read Spark deletes rows; those on a store are refused.
"""
