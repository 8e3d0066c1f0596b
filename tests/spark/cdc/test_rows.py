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


BROKEN = {
    "not UTF-8": (b"id,name\n1,a\n2,caf\xe9\n", r"1\.csv:3: not utf-8 text: byte 0xe9 at offset 5 of the line"),
    "a name that is not": (b"id,caf\xe9\n1,a\n", r"1\.csv:1: not utf-8 text"),
    "to the end": (b'id,name\n1,"a\n2,b\n3,c\n', r"1\.csv:2: a quote that is not closed"),
    "to another quote": (b'id,name\n1,"a\n2,"b"\n3,"c"\n', r"1\.csv:2: a quote that is not closed"),
    "in a file without a last line feed": (b'id,name\n1,"a"\n2,"b', r"1\.csv:3: a quote that is not closed"),
}


@pytest.mark.release
@pytest.mark.parametrize("what", BROKEN)
def test_a_csv_file_whose_text_is_broken_is_named_and_nothing_is_ingested(
    spark: SparkSession, tmp_path: Path, what: str
) -> None:
    lake = Lake(spark, tmp_path, (table(columns={"id": "int"}, database=None),))
    lake.settings = {"format": "rows", "files": "landing/t/*.csv", "csv": CsvFormat(True, "", ",")}
    content, why = BROKEN[what]
    land(lake, "1.csv", "")
    (lake.landing / "t" / "1.csv").write_bytes(content)
    with pytest.raises(IngestError, match=why):
        lake.run()
    assert not Path(lake.uri()).exists()


@pytest.mark.release
def test_a_csv_file_is_read_in_its_encoding(spark: SparkSession, tmp_path: Path) -> None:
    """Quotes as they should be, and those that mean nothing, do not look broken."""
    lake = Lake(spark, tmp_path, (table(columns={"id": "int"}, database=None),))
    csv = CsvFormat(True, "", ",", "windows-1252")
    lake.settings = {"format": "rows", "files": "landing/t/*.csv", "csv": csv}
    land(lake, "1 ü.csv", "")
    text = 'id,größe\n1,"ä\n""€"""\n2,5" pipe\n3,"""q""\n"\n4,"x"y\n5,"line\nbreak"'
    (lake.landing / "t" / "1 ü.csv").write_bytes(text.encode("windows-1252"))
    lake.run()
    assert lake.rows("t", "id", "`größe`") == [
        (1, 'ä\n"€"'), (2, '5" pipe'), (3, '"q"\n'), (4, '"x"y'), (5, "line\nbreak"),
    ]  # fmt: skip
