"""TPC-H and TPC-DS as projects. Spark's own test jar has the queries; `queries.lock.toml` says which jar.

`query_text` gives a query the names of columns and tables that a model needs, `tables` knows columns and keys of the
tables, `suites` writes both as a project, and `plans` shows how each model of it is maintained.
"""
