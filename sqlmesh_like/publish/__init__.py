"""Changed rows → databases, DuckDB files and Parquet folders.

`publisher` decides what to send since the frontier that the destination has; a `store` writes rows and frontier at
once.
"""
