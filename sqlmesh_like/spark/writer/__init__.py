"""Signed or whole rows → one commit with rows, frontier, fingerprint and clock.

`materializer` runs a model by its strategy; `upsert` nets to one action per key and writes; `schema_reconciliation`
adapts the columns; `author_incremental`, `snapshots`, `seeds` and `stored_failures` are the other kinds of tables;
`rebucket` rewrites a table with another number of files.
"""
