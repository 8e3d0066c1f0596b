"""Signed or whole rows → one commit with rows, frontier, fingerprint and clock.

`table_writer` commits what a model's run computed, to a table as `table_layout` has it; `upsert` nets to one action per
key and writes; `schema_reconciliation` adapts the columns; `author_incremental`, `snapshots`, `seeds` and
`stored_failures` are the other kinds of tables; `rebucket` rewrites a table with another number of files.
"""
