"""Array columns in tables of Hudi's own writer, with elements without NULL, too: merged, logged, compared, read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.hudi.change_log import logged_columns, logs_between
from sqlmesh_like.hudi.file_schemas import spark_schema_of
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, conform_values, file_schema
from tests.written_table import WrittenTable, fetched

MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
ITEM = {"type": "record", "name": "v", "namespace": "n", "fields": [
    {"name": "At", "type": ["null", MOMENT], "default": None},
    {"name": "in", "type": ["null", {"type": "array", "items": ["null", "int"]}], "default": None},
]}  # fmt: skip
ARRAY = {"type": "array", "items": ["null", ITEM]}
ROWS: dict[str, object] = {
    "a": [{"At": None, "in": [1, None]}, None], "b": None, "c": [], "d": [{"At": 5, "in": []}, {"At": 6, "in": None}],
}  # fmt: skip
SHOWN = "_sml_key, v IS NULL, len(v), list_transform(v, LAMBDA e : [epoch_us(e.at), len(e.in), e.in[1]])"


def wanted(items: object) -> pa.Field:
    record = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "v", "type": ["null", {"type": "array", "items": items}]}],
    }
    return file_schema(json.dumps(record)).field("v")


def test_null_arrays_empty_ones_and_arrays_of_null_stay_apart_in_files_and_logs(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"v": ARRAY}).create()
    table.upsert([*ROWS.items()])
    start = table.frontier
    assert sorted(fetched(f"SELECT {SHOWN} FROM ({table.reader().rows(start)})")) == [
        ("a", False, 2, [[None, 2, 1], [None, None, None]]), ("b", True, None, None), ("c", False, 0, []),
        ("d", False, 2, [[5, 0, None], [6, None, None]]),
    ]  # fmt: skip
    table.upsert([("a", None), ("b", []), ("c", [None])], [("d", None)])
    (log,) = logs_between(table.timeline, start, table.frontier)
    columns = {column.name: column.type for column in spark_schema_of(logged_columns(table.timeline, log))}
    assert columns["v"] == "array<struct<At:timestamp,in:array<int>>>"
    change = table.reader().change(start, table.frontier)
    signed = fetched(f"SELECT _sml_key, v IS NULL, len(v), _sml_weight FROM ({change})")
    assert sorted(signed, key=str) == [
        ("a", False, 2, -1), ("a", True, None, 1), ("b", False, 0, 1), ("b", True, None, -1), ("c", False, 0, -1),
        ("c", False, 1, 1), ("d", False, 2, -1),
    ]  # fmt: skip


def test_files_have_the_three_levels_that_spark_and_hudi_write(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", {"v": {"type": "array", "items": ["null", "int"]}}).create()
    table.upsert([("a", [1, None])])
    (file,) = (tmp_path / "t").glob("*.parquet")
    assert "optional group field_id=-1 v (List) {\n    repeated group field_id=-1 list {\n      optional int32" in str(
        pq.ParquetFile(file).schema
    )


@pytest.mark.parametrize("values", [[[1, 2], None, []], [None, None], [[], [3]], [[None, 1], None]])
def test_parts_of_arrays_are_conformed(values: list[object]) -> None:
    computed = pa.array([[9], *values, [8]], pa.list_(pa.int32())).slice(1, len(values))
    conformed = conform_values(pa.chunked_array([computed, computed]), wanted(["null", "int"]))
    assert (conformed.type, conformed.to_pylist()) == (pa.list_(pa.int32()), values * 2)


def test_moments_within_arrays_get_utc() -> None:
    moments = pa.array([[1, None], None], pa.list_(pa.timestamp("us")))
    conformed = conform_values(pa.chunked_array([moments]), wanted(["null", MOMENT]))
    assert conformed.type.value_type == pa.timestamp("us", "UTC")
    assert conformed.is_null().to_pylist() == [False, True]


def test_an_element_that_has_no_null_gets_none() -> None:
    field = wanted("int")
    column = pa.chunked_array([pa.array([[1], None, []], pa.list_(pa.int32()))])
    assert not field.type.value_field.nullable
    assert conform_values(column, field).to_pylist() == [[1], None, []]
    with pytest.raises(UnsupportedRowsError, match="an element of v without a value"):
        conform_values(pa.chunked_array([pa.array([[None]], pa.list_(pa.int32()))]), field)
    with pytest.raises(UnsupportedRowsError, match="element as string"):
        conform_values(pa.chunked_array([pa.array([["x"]])]), field)
