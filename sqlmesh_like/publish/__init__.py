"""Changed rows → databases, DuckDB files and Parquet folders.

`publisher` decides whether to send the change since the destination's frontier or the whole table; a `store` writes
rows and frontier in one transaction.
"""
