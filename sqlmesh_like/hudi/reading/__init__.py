"""How a Hudi table is read, as data: which files, with which signs and joins. No engine, no rows.

`rows_plan` says what makes up a table at a frontier, `change_plan` what makes up its change between two. Each rule of
reading stands there once, with its reason; Spark (`spark.change_feed`) and DuckDB (`duckdb.local_files`) render the
plans, each in its own SQL, and say only what they cannot read.
"""
