"""One batch into one table: `table_batch` evolves, merges and commits; offsets are in the commit.

`batch_log` writes the change log beside it; `dead_letters` keeps events that cannot be ingested; `truncates` notes
when a table was emptied, `last_commits` what each table held, so that one that went back is seen.
"""
