"""The columns of base files, where neither their commit nor their footer states them: files of Hudi's row writer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.file_schemas import paths_by_schema
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column
from tests.unit.hudi.test_timeline import Lake


def columns_of(root: Path, type_: pa.DataType) -> list[tuple[Column, ...]]:
    table = Lake(root)
    table.commit(1, ["a"])  # whose metadata does not hold a schema, as of an archived commit
    timeline = Timeline(str(root))
    (file_slice,) = timeline.slices(timeline.frontier or "").values()
    schema = pa.schema([pa.field("_hoodie_record_key", pa.string()), pa.field("x", type_)])
    pq.write_table(schema.empty_table(), root / file_slice.path, store_schema=False)
    return list(paths_by_schema(timeline, [file_slice]))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (pa.int32(), "int"), (pa.int64(), "bigint"), (pa.float32(), "float"), (pa.float64(), "double"),
        (pa.bool_(), "boolean"), (pa.string(), "string"), (pa.binary(), "binary"), (pa.date32(), "date"),
        (pa.timestamp("us", "UTC"), "timestamp"), (pa.timestamp("us"), "timestamp_ntz"),
        (pa.decimal128(12, 2), "decimal(12,2)"), (pa.decimal128(38, 18), "decimal(38,18)"),
        (pa.list_(pa.int32()), "array<int>"), (pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
        (pa.struct({"a": pa.int32(), "b": pa.list_(pa.date32())}), "struct<a:int,b:array<date>>"),
    ],
)  # fmt: skip
def test_a_file_without_a_schema_of_its_own_has_the_types_of_parquet(
    tmp_path: Path, written: pa.DataType, read: str
) -> None:
    assert columns_of(tmp_path, written) == [(Column("_hoodie_record_key", "string"), Column("x", read))]


def test_a_type_that_spark_does_not_write_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"does not say its schema: a column of time64\[us\]"):
        columns_of(tmp_path, pa.time64("us"))
