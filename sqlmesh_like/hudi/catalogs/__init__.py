"""Catalogs that other engines find tables by: how one is reached, and what it knows of a table.

Grain: one table of a target. Nothing here calls a catalog; `spark.tables.catalog_sync` does.
"""
