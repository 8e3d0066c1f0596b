"""Failing rows of a data test as a table of their own. Owns when it is written; the test determines the rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame

from sqlmesh_like.hudi.writer.new_table import table_name
from sqlmesh_like.names import KEY
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord, TableState
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.upsert import TableSpec


def store_failing_rows(
    rows: DataFrame, place: TablePlace, state: TableState, now: datetime, hudi: Mapping[str, str]
) -> bool:
    """Replace the table's rows by these keyed rows. Returns whether it exists now: none is created without rows."""
    if not state.exists and rows.isEmpty():
        return False
    options = {key: str(value) for key, value in hudi.items()}
    table = HudiTable(place.uri, table_name(place.table), (KEY,), options=options)
    record = TableRecord(place.unique_id, "", {}, now.isoformat(), "test")
    sinks.rebuild(rows, TableSpec(table, (), (), state), {RECORD_KEY: record.to_json()})
    return True
