"""Catalog, planner and engine of a target, put together: of Spark (`lake`) and of DuckDB (`duck_lake`).

`read_session` is the lake of a caller that writes nothing; `spark_session` starts Spark, and keeps it for who asks;
`table_history` reads timelines alone; `clean_tables` removes history that no model needs.
"""
