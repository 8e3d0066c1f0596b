"""The tables of a database compared with their tables in the lake, by checksums of chunks, down to rows and columns.

Every value has a canonical text that both sides compute (`value_kinds`, `dialects`), a row one hash of all of them.
`columns` says which columns can be compared (`local_times`: local times, in UTC), `side` asks one side by SQL,
`narrowing` finds the keys whose rows differ, `unread_log` those of them that the log has changes of which the table has
not read yet, and `table_comparison` is the order of these steps. `repair` adds the rows that differ to the log, as
`rows_by_key` reads them again.
"""
