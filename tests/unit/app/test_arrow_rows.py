"""Rows as Arrow: Spark's types, and values as either engine gives them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest

from sqlmesh_like.app.arrow_rows import arrow_schema, arrow_table, arrow_type
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows


class _Row(tuple[object, ...]):
    """As Spark's `Row`."""

    def asDict(self) -> Mapping[str, object]:
        return {"a": self[0], "b": self[1]}


@pytest.mark.parametrize(
    ("spark", "arrow"),
    [
        ("boolean", pa.bool_()),
        ("tinyint", pa.int8()),
        ("smallint", pa.int16()),
        ("int", pa.int32()),
        ("bigint", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("decimal(38,18)", pa.decimal128(38, 18)),
        ("string", pa.string()),
        ("varchar(3)", pa.string()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("map<string,int>", pa.map_(pa.string(), pa.int32())),
        ("struct<a:int,b:array<date>>", pa.struct({"a": pa.int32(), "b": pa.list_(pa.field("element", pa.date32()))})),
    ],
)
def test_every_type_of_spark_has_one(spark: str, arrow: Any) -> None:
    assert arrow_type(spark) == arrow


def test_values_keep_their_meaning() -> None:
    schema = (Column("t", "timestamp"), Column("s", "struct<a:int,b:array<date>>"), Column("m", "map<string,int>"))
    rows = (
        (datetime(2024, 1, 1), _Row((1, [date(2024, 1, 2)])), {"k": 1}),
        (None, {"a": None, "b": []}, [("k", 2)]),
    )
    table = arrow_table(Rows(schema, rows))
    assert table.schema == arrow_schema(schema)
    assert str(table.column("t")[0].as_py()) == "2024-01-01 00:00:00+00:00"
    assert table.column("s").to_pylist() == [{"a": 1, "b": [date(2024, 1, 2)]}, {"a": None, "b": []}]
    assert table.column("m").to_pylist() == [[("k", 1)], [("k", 2)]]


def test_no_rows_have_their_columns_still() -> None:
    assert arrow_table(Rows((Column("id", "int"),), ())).schema == pa.schema([("id", pa.int32())])


def test_a_type_that_is_not_known_is_that_of_the_values() -> None:
    assert arrow_table(Rows((Column("x"),), ((1,),))).schema == pa.schema([("x", pa.int64())])
