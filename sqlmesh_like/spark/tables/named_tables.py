"""Tables of the lake under their names, for statements that a user writes. Owns putting them into Spark's catalog.

Queries of models never need it: these read pinned states by their path. A name that the catalog knows stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from sqlmesh_like.names import TableName
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.sql_text import spark_identifier, spark_literal


def register(session: SparkSession, tables: Mapping[TableName, TableState]) -> None:
    """Make these tables known by name, those that are there. Rows and hidden columns are as they stand on disk."""
    for name, state in tables.items():
        if not state.exists:
            continue
        session.sql(f"CREATE DATABASE IF NOT EXISTS {spark_identifier(name.schema)}")
        form = state.format if state.kind == "files" else "hudi"
        session.sql(f"CREATE TABLE IF NOT EXISTS {name.sql()} USING {form} LOCATION {spark_literal(state.uri)}")
