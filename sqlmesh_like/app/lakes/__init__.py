"""Catalog, planner and engine of a target, assembled for Spark (`lake`) and for DuckDB (`duck_lake`).

`read_session` is the lake of a caller that writes nothing; `spark_session` starts Spark and keeps it for later callers;
`table_history` reads only timelines; `clean_tables` removes history that no model needs. `table_locks` are the locks
that a call needs, `lake_lock` takes them, and `lock_registry` knows who holds which.
"""
