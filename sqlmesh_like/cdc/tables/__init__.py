"""One batch into one table: `table_batch` evolves, merges and commits; offsets are in the commit.

`batch_log` writes the change log beside it; `dead_letters` stores events that cannot be ingested; `truncates` records
when a table was emptied, `last_commits` each table's newest commit, so that a table that went back is noticed.
"""
