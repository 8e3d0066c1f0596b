"""Plans run by DuckDB. `local_programs` holds what the models of a run share, `local_steps` creates the steps of one
model over the Parquet files of its tables, `local_actions` writes what changes, and `local_models` commits it.
`memory_lake` is a table in memory, for unit and property tests: the same machine over rows that are given.
"""
