"""Struct columns in tables of Hudi's own writer, which may have fields without NULL: merged, logged, compared, read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.hudi.change_log import logged_columns, logs_between
from sqlmesh_like.hudi.file_schemas import spark_schema_of
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, conform_values, file_schema
from tests.written_table import WrittenTable, fetched

STRUCT = {
    "type": "record", "name": "v", "namespace": "n",
    "fields": [
        {"name": "one", "type": "int"},
        {"name": "At", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
    ],
}  # fmt: skip

COMPUTED = pa.struct({"one": pa.int32(), "At": pa.timestamp("us")})
RECORD = {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["null", STRUCT]}]}
WANTED = file_schema(json.dumps(RECORD)).field("v")


def table_of(path: Path) -> WrittenTable:
    return WrittenTable(path / "t", {"v": STRUCT}).create()


def test_null_structs_and_structs_of_nulls_stay_apart_in_files_and_logs(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.upsert([("a", {"one": 1, "At": None}), ("b", None), ("c", {"one": 2, "At": 5})])
    start = table.frontier
    table.upsert([("a", None), ("b", {"one": 7, "At": None})], [("c", None)])
    rows = fetched(f"SELECT _sml_key, v IS NULL, v.one, epoch_us(v.at) FROM ({table.reader().rows(table.frontier)})")
    assert sorted(rows) == [("a", True, None, None), ("b", False, 7, None)]
    (log,) = logs_between(table.timeline, start, table.frontier)
    columns = {column.name: column.type for column in spark_schema_of(logged_columns(table.timeline, log))}
    assert columns["v"] == "struct<one:int,At:timestamp>"
    change = table.reader().change(start, table.frontier)
    signed = fetched(f"SELECT _sml_key, v IS NULL, v.one, epoch_us(v.at), _sml_weight FROM ({change})")
    assert sorted(signed, key=str) == [
        ("a", False, 1, None, -1), ("a", True, None, None, 1), ("b", False, 7, None, 1), ("b", True, None, None, -1),
        ("c", False, 2, 5, -1),
    ]  # fmt: skip


@pytest.mark.parametrize("value", [{"one": None, "At": None}, {"one": None, "At": 3}])
def test_a_field_that_has_no_null_gets_none(value: object) -> None:
    with pytest.raises(UnsupportedRowsError, match="one without a value"):
        conform_values(pa.chunked_array([pa.array([None, value, {"one": 1}], COMPUTED)]), WANTED)


def test_a_field_that_has_no_null_may_be_one_of_a_null_struct() -> None:
    values = [None, {"one": 1, "At": None}, None]
    parts = [pa.nulls(1, field.type) for field in COMPUTED]
    nothing = pa.StructArray.from_arrays(parts, fields=list(COMPUTED), mask=pa.array([True]))
    chunks = [pa.array(values[:2], COMPUTED), pa.concat_arrays([nothing, pa.array(values[1:], COMPUTED)])]
    conformed = conform_values(pa.chunked_array(chunks), WANTED)
    assert (conformed.type, conformed.to_pylist()) == (WANTED.type, [*values[:2], *values])
    with pytest.raises(UnsupportedRowsError, match="one without any value"):
        conform_values(pa.chunked_array([nothing]), WANTED)


def test_fields_of_other_names_or_in_another_order_are_other_types() -> None:
    for fields in ({"At": pa.timestamp("us"), "one": pa.int32()}, {"One": pa.int32(), "At": pa.timestamp("us")}):
        with pytest.raises(UnsupportedRowsError, match="which is struct"):
            conform_values(pa.chunked_array([pa.array([None], pa.struct(fields))]), WANTED)
