"""Rows of files instead of change events, by Spark: CSV and Parquet into the table that JSON lines began."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import CsvFormat
from tests.spark.ingest_lake import Lake, table

NOON = datetime(2024, 1, 31, 12, 30, 15, 123456)


def test_rows_of_csv_and_parquet_files(spark: SparkSession, tmp_path: Path) -> None:
    """A column `Op` is one like any other; a record with too few values is a dead letter."""
    types = {"id": "bigint", "name": "string", "price": "decimal(10,2)", "Op": "string"}
    lake = Lake(spark, tmp_path, (table(columns=types, database=None),), {"format": "rows"})
    lake.settings = {"format": "rows", "files": "landing/t/*.jsonl"}
    land(lake, "1.jsonl", '{"id": 1, "name": "a", "price": "1.50", "Op": "D"}\n{"id": 2}\n')
    lake.run()
    lake.settings = {"format": "rows", "files": "landing/t/*.csv", "csv": CsvFormat(True, "", ",")}
    land(lake, "2.csv", '\ufeffOp,id,name,price\nU,1,"b,\nc",2\nI,3,,7.25\n4,x\n')
    lake.run()
    assert [reason.partition(":")[0] for _, _, reason, _ in lake.dead_letters()] == [
        "unknown operation `not a record of this file's columns"
    ]
    lake.settings = {"format": "rows", "files": "landing/t/*.parquet"}
    columns = {"name": ["d", "e", "f"], "Op": ["I", None, "I"], "a b": [None, None, 1], "a-b": [1, 2, 3]}
    columns["nested"] = pa.array([[NOON], [], None], pa.list_(pa.timestamp("us")))
    rows = pa.table({"id": pa.array([2, 5, 6], pa.int32()), **columns})
    pq.write_table(rows, lake.landing / "t" / "3.parquet")
    lake.run()
    assert "column a b: another column of the row is a_b" in lake.dead_letters()[1][2]
    assert ('["2024-01-31T12:30:15.123456"]',) in lake.rows("t", "nested")
    assert lake.rows("t", *types) == [
        (1, "b,\nc", Decimal("2.00"), "U"),
        (2, "d", None, "I"),
        (3, None, Decimal("7.25"), "I"),
        (5, "e", None, None),
    ]


def land(lake: Lake, name: str, text: str) -> None:
    path = lake.landing / "t" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.release
def test_records_without_names_have_the_declared_columns(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, (table(columns={"id": "int", "n": "int"}, database=None, primary_key=()),))
    lake.settings = {"format": "rows", "files": "landing/*/*.csv"}
    land(lake, "1.csv", "\ufeff\n\n1,2\n1,2\n")
    lake.run()
    assert lake.rows("t", "id", "n") == [(1, 2), (1, 2)]
    land(lake, "2.csv", "U,1,2\n")
    with pytest.raises(IngestError, match="3 values a record, and its table declares 2 columns"):
        lake.run()
