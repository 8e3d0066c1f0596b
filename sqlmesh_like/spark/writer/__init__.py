"""Signed or whole rows → one commit with rows, frontier, fingerprint and clock.

`materializer` runs a model by its strategy; `upsert` nets to one action a key and writes; `schema_reconciliation` fits
the columns; `author_incremental`, `snapshots`, `seeds` and `stored_failures` are the other kinds of tables;
`rebucket` writes a table anew with another number of files.
"""
