"""What a call of `sml` without Spark imports. The process that calls are forked from imports it, and nothing else."""

from __future__ import annotations

import importlib
import pkgutil

import sqlmesh_like

_LIBRARIES = ("duckdb", "jinja2", "pyarrow.dataset", "pyarrow.parquet", "sqlalchemy.dialects.sqlite")
_WITH_SPARK = ("sqlmesh_like.spark", "sqlmesh_like.cdc", "sqlmesh_like.__main__")

for name in _LIBRARIES:
    importlib.import_module(name)
for module in pkgutil.walk_packages(sqlmesh_like.__path__, "sqlmesh_like."):
    if not module.name.startswith(_WITH_SPARK):
        importlib.import_module(module.name)
