"""Tables made without Spark are what Hudi's own writer makes, whole or not there at all."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.recovery import table_swap
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, file_schema
from sqlmesh_like.hudi.writer.new_table import NewTable, table_properties, table_schema
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, KEY, PARTITION, Column

TYPES = {
    "i": "int", "l": "bigint", "f": "float", "d": "double", "b": "boolean", "s": "string", "day": "date",
    "at": "timestamp", "n": "decimal(22,2)", "st": "struct<select:int,B:struct<c:decimal(22,2),d:date>>",
}  # fmt: skip
ROW = (
    1, 2**60, 0.5, 1e300, True, "é", datetime.date(1, 1, 1), datetime.datetime(2024, 1, 31, 12, 0, 0, 1),
    Decimal("-1.50"), {"select": None, "B": {"c": Decimal("1.00"), "d": datetime.date(2024, 2, 29)}},
)  # fmt: skip
METADATA = {"by": "test"}


def new_table(root: Path, *, partitioned: bool = False, buckets: int = 1) -> NewTable:
    own = [Column(KEY, "string"), *([Column(PARTITION, "string")] if partitioned else [])]
    columns = (*(Column(name, type_) for name, type_ in TYPES.items()), *own)
    return NewTable(str(root / "t"), "dws_t", columns, PARTITION if partitioned else None, buckets)


def rows_of(table: NewTable, *rows: tuple[object, ...]) -> pa.Table:
    fields = [field for field in file_schema(table_schema(table)) if field.name not in (*HUDI_COLUMNS, IS_DELETED)]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), fields, strict=True)]
        if rows
        else [pa.array([], field.type) for field in fields],
        schema=pa.schema(fields),
    )


def read(table: NewTable) -> list[tuple[object, ...]]:
    """The rows as hudi-rs reads them."""
    batches = HudiTableBuilder.from_base_uri(table.uri).build().read()
    names = [column.name for column in table.columns]
    rows = [tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist()]
    return [tuple(v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in row) for row in rows]


@pytest.mark.parametrize(("partitioned", "buckets"), [(False, 1), (True, 3)])
def test_a_table_has_its_rows_types_and_record(tmp_path: Path, partitioned: bool, buckets: int) -> None:
    table = new_table(tmp_path, partitioned=partitioned, buckets=buckets)
    given = [(*ROW, f"k{n}", *(("x", "y")[n % 2 :][:1] if partitioned else ())) for n in range(5)]
    given += [
        (*(None for _ in ROW[1:]), value, f"none{n}", *(("x",) if partitioned else ()))
        for n, value in enumerate((None, {"select": None, "B": None}, {"select": 1, "B": {"c": None, "d": None}}))
    ]
    table.write(rows_of(table, *given), METADATA)
    assert sorted(read(table), key=str) == sorted(given, key=str)
    state = LakeHistory().state(table.uri)
    assert state.kind == "cow"
    assert {column.name: column.type for column in state.schema or ()} == TYPES
    assert Timeline(table.uri).extra("sml.by") == "test"
    assert [path.name for path in tmp_path.iterdir()] == ["t"], "nothing stays beside it"


def test_a_table_without_rows_is_a_table(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.write(rows_of(table), METADATA)
    assert LakeHistory().state(table.uri).exists


def test_a_type_that_only_spark_writes_is_refused_before_anything_is_there(tmp_path: Path) -> None:
    table = NewTable(str(tmp_path / "t"), "dws_t", (Column("a", "map<string,int>"), Column(KEY, "string")))
    with pytest.raises(UnsupportedRowsError, match="a of the type map<string,int>"):
        table.write(pa.table({"a": [None], KEY: ["k"]}), METADATA)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_another_writer_made_meanwhile_stays(tmp_path: Path) -> None:
    table, real = new_table(tmp_path), table_swap.fault_point

    def made_by_another(step: str) -> None:
        if step == "create.built":
            (tmp_path / "t").mkdir()
        real(step)

    with mock.patch.object(table_swap, "fault_point", made_by_another), pytest.raises(RetryableError, match="another"):
        table.write(rows_of(table, (*ROW, "k")), METADATA)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert list((tmp_path / "t").iterdir()) == []


def test_what_a_kill_left_before_the_move_is_moved_if_it_is_whole(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with mock.patch.object(table_swap, "_move", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        table.write(rows_of(table, (*ROW, "k")), METADATA)
    assert not (tmp_path / "t").exists()
    assert recover(table.uri)
    assert read(table) == [(*ROW, "k")]


PROPERTIES = {
    "hoodie.table.type": "COPY_ON_WRITE", "hoodie.timeline.layout.version": "2",
    "hoodie.timeline.history.path": "history", "hoodie.datasource.write.drop.partition.columns": "false",
    "hoodie.table.format": "native", "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.partitionpath.urlencode": "false", "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.table.version": "9", "hoodie.table.initial.version": "9", "hoodie.archivelog.folder": "history",
    "hoodie.table.cdc.enabled": "false", "hoodie.table.multiple.base.file.formats.enable": "false",
    "hoodie.table.timeline.timezone": "UTC", "hoodie.table.recordkey.fields": "_sml_key",
    "hoodie.timeline.path": "timeline", "hoodie.partition.metafile.use.base.format": "false",
    "hoodie.populate.meta.fields": "true", "hoodie.table.base.file.format": "PARQUET",
}  # fmt: skip
"""What Hudi 1.2.0 wrote on Spark with our options, for `dws_daily` and `dws_flat`; on Spark a test asks it again."""


@pytest.mark.parametrize(
    ("name", "field", "own"),
    [
        ("dws_daily", PARTITION, ("2112045015", "SIMPLE", "HiveStylePartitionValueExtractor")),
        ("dws_flat", None, ("2460966742", "NON_PARTITION", "NonPartitionedExtractor")),
    ],
)
def test_properties_are_those_that_hudi_writes(name: str, field: str | None, own: tuple[str, str, str]) -> None:
    checksum, generator, extractor = own
    assert table_properties(NewTable("/t", name, (), field)) == PROPERTIES | {
        "hoodie.table.name": name,
        "hoodie.table.checksum": checksum,
        "hoodie.table.partition.fields": field or "",
        "hoodie.table.keygenerator.type": generator,
        "hoodie.table.partition_extractor_class": f"org.apache.hudi.hive.{extractor}",
    }


def test_the_schema_is_the_one_that_hudi_derives(tmp_path: Path) -> None:
    record = json.loads(table_schema(new_table(tmp_path)))
    assert (record["name"], record["namespace"]) == ("dws_t_record", "hoodie.dws_t")
    types = {field["name"]: field["type"] for field in record["fields"]}
    assert types["n"] == [
        "null",
        {
            "type": "fixed", "name": "fixed", "namespace": "hoodie.dws_t.dws_t_record.n", "size": 10,
            "logicalType": "decimal", "precision": 22, "scale": 2,
        },
    ]  # fmt: skip
    assert types["st"][1] == {
        "type": "record", "name": "st", "namespace": "hoodie.dws_t.dws_t_record",
        "fields": [
            {"name": "select", "type": ["null", "int"], "default": None},
            {
                "name": "B", "default": None,
                "type": ["null", {
                    "type": "record", "name": "B", "namespace": "hoodie.dws_t.dws_t_record.st",
                    "fields": [
                        {"name": "c", "default": None, "type": ["null", {
                            "type": "fixed", "name": "fixed", "namespace": "hoodie.dws_t.dws_t_record.st.B.c",
                            "size": 10,
                            "logicalType": "decimal", "precision": 22, "scale": 2,
                        }]},
                        {"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
                    ],
                }],
            },
        ],
    }  # fmt: skip
    assert types["at"] == ["null", {"type": "long", "logicalType": "timestamp-micros"}]
    assert types[IS_DELETED] == "boolean"
