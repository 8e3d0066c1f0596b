"""DuckDB for what needs no JVM: tests, targets without Spark, and small changes of local tables.

`dialect` and `duck_types` translate Spark's trees; `allow_list` says what gives Spark's results, `exact_sql` proves
programs exact. `duck_engine` implements the port of `run`, with `duck_history`; `duck_units` runs
unit tests by the shipped plan; `programs` runs plans, over the Parquet files of `local_files` or in memory.
"""
