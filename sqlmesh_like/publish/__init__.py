"""Changed rows → databases, DuckDB files and Parquet folders.

`publisher` decides what to send since the destination's frontier; a `store` writes rows and frontier in
one transaction.
"""
