"""Engines: the only place, beside ingestion's stream, that knows Spark, Hudi's files or DuckDB."""
