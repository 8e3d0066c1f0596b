"""Golden messages of every format but Debezium on real Spark: typed rows, moves, deletes, what is no row.

Each message is written after its format's own documentation, named beside it.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.sources.offset_range import files_of
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.project.nodes import PartitionBy
from tests.levels import parametrize
from tests.spark.ingest_lake import Lake, event, table

NOON = datetime.datetime(2020, 1, 1, 12, 30)
DAY = datetime.date(2020, 1, 2)


def canal(kind: str, data: Any, old: Any = None, **changed: Any) -> str:
    """Canal's wiki, "Canal Kafka RocketMQ QuickStart", flatMessage."""
    message = {
        "data": data,
        "database": "db",
        "es": 1589373549000,
        "id": 9,
        "isDdl": False,
        "mysqlType": {
            "id": "bigint(20) unsigned",
            "name": "varchar(255)",
            "price": "decimal(23,6)",
            "at": "datetime",
            "day": "date",
            "raw": "blob",
            "flag": "tinyint(1)",
        },
        "old": old,
        "pkNames": ["id"],
        "sql": "",
        "sqlType": {},
        "table": "t",
        "ts": 1589373549300,
        "type": kind,
    }
    return json.dumps({**message, **changed}, ensure_ascii=False)


def canal_row(number: int, **changed: Any) -> dict[str, Any]:
    row = {"id": str(number), "name": "ü", "price": "12345678901234567.891234", "at": "2020-01-01 12:30:00"}
    return {**row, "day": "2020-01-02", "raw": "\u0000\u00ff", "flag": "1", **changed}


def test_canal_messages_hold_many_rows_and_the_types_of_mysql(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(partition_by=None),), {"format": "canal"})
    rows = [canal_row(1), canal_row(2), canal_row(3, price="not a number"), canal_row(2**64 - 1, name=None)]
    report = shop.ingest(
        canal("INSERT", rows),
        canal("UPDATE", [canal_row(5, name="renumbered"), canal_row(2, name="new")], [{"id": "1"}, {"name": "ü"}]),
        canal("DELETE", [canal_row(4)]),
        canal("ALTER", None, isDdl=True, sql="ALTER TABLE t ADD x int"),
        canal("QUERY", None, isDdl=False),
        canal("INSERT", []),
        canal("UPSERT", [canal_row(6)]),
        canal("INSERT", [canal_row(7), canal_row(8, colour="red")]),
        canal("INSERT", [canal_row(9, raw="中")]),
    )
    assert shop.types() == {
        "id": "decimal(20,0)",
        "name": "string",
        "price": "decimal(23,6)",
        "at": "timestamp",
        "day": "date",
        "raw": "binary",
        "flag": "int",
    }
    exact = Decimal("12345678901234567.891234")
    assert shop.rows() == [
        (Decimal(2**64 - 1), None, exact, NOON, DAY, bytearray(b"\x00\xff"), 1),
        (Decimal(2), "new", exact, NOON, DAY, bytearray(b"\x00\xff"), 1),
        (Decimal(5), "renumbered", exact, NOON, DAY, bytearray(b"\x00\xff"), 1),
    ]
    assert report.skipped == {"skip": 2}
    assert {(position, reason) for _, position, reason, _ in shop.dead_letters()} == {
        (1, "column `price`: cannot read not a number as decimal(23,6)"),
        (6, "type `INSERT` without `data`"),
        (7, "unknown type `UPSERT`"),
        (8, "`mysqlType` lacks column `colour`"),
        (9, "column `raw`: cannot read 中 as binary"),
    }


def maxwell(kind: str, data: Any, old: Any = None, table: str = "t") -> str:
    """https://maxwells-daemon.io/dataformat/"""
    message = {"database": "db", "table": table, "type": kind, "ts": 1477053217, "xid": 23396, "commit": True}
    return json.dumps({**message, "data": data, **({"old": old} if old else {})})


def test_maxwell_messages_tell_only_what_changed_of_the_old_row(spark: SparkSession, tmp_path: Path) -> None:
    types = {"id": "int", "c": "timestamp", "price": "decimal(23,6)"}
    by_year = {"partition_by": shop_partition("c")}
    shop = Lake(spark, tmp_path, (table(columns=types, **by_year),), {"format": "maxwell"})
    row = {"id": 1, "m": 4.2341, "c": "2016-10-21 05:33:37.523000", "comment": "I am a creature of light."}
    exact = maxwell("insert", {**row, "id": 4, "price": 0}).replace('"price": 0', '"price": 12345678901234567.891234')
    shop.ingest(
        maxwell("bootstrap-start", {}),
        maxwell("bootstrap-insert", row),
        maxwell("bootstrap-insert", {**row, "id": 2}),
        maxwell("bootstrap-complete", {}),
        exact,
        # The row moves to another partition: only `old` says from where.
        maxwell("update", {**row, "c": "2017-01-01 00:00:00"}, {"c": row["c"]}),
        maxwell("update", {**row, "id": 3, "comment": None}, {"id": 2, "comment": "I am a creature of light."}),
        json.dumps({"type": "table-alter", "database": "db", "table": "t", "ts": 1, "sql": "…"}),
        maxwell("delete", {**row, "id": 9}),
    )
    assert shop.rows("t", "id", "year", "price", "comment") == [
        (1, "2017", None, "I am a creature of light."),
        (3, "2016", None, None),
        (4, "2016", Decimal("12345678901234567.891234"), "I am a creature of light."),
    ]


def shop_partition(column: str) -> Any:
    from sqlmesh_like.project.nodes import PartitionBy

    return PartitionBy(column, "yyyy", "year")


def test_flink_writes_like_debezium_like_canal_and_without_any_table(spark: SparkSession, tmp_path: Path) -> None:
    """Flink CDC's documentation of its Kafka sink, and Flink's of its formats debezium-json and canal-json."""
    folder = tmp_path / "landing" / "db" / "t"
    folder.mkdir(parents=True)
    source = {"db": "db", "table": "t"}
    lines = [
        json.dumps({"before": None, "after": {"id": 1, "col1": "1"}, "op": "c", "source": source}),
        json.dumps({"old": None, "data": [{"id": 2, "col1": 2.5}], "type": "INSERT", "database": "db", "table": "t"}),
        # Flink's own sink: no table, and an update is a delete and an insert.
        json.dumps({"before": {"id": 1, "col1": "1"}, "after": None, "op": "d"}),
        json.dumps({"before": None, "after": {"id": 1, "col1": "x"}, "op": "c"}),
        json.dumps({"data": [{"id": 2, "col1": 2.5}], "type": "DELETE"}),
    ]
    (folder / "a.jsonl").write_text("\n".join(lines))
    shop = Lake(
        spark, tmp_path, (table(columns={"col1": "string"}),), {"format": "flink_cdc", "files": "landing/*/*/*.jsonl"}
    )
    report = shop.run()
    assert (report.dead_letters, report.skipped) == (0, {})
    assert shop.rows() == [(1, "x")]


@pytest.mark.checklist(9, 24, 32)
def test_dms_folders_hold_a_full_load_and_then_changes(spark: SparkSession, tmp_path: Path) -> None:
    """AWS DMS user guide, "Using Amazon S3 as a target"."""
    folder = tmp_path / "landing" / "db" / "t"
    folder.mkdir(parents=True)
    exact = Decimal("12345678901234567.891234")
    load = {"id": [1, 2, 3], "price": [exact, None, Decimal(1)], "c": [NOON] * 3, "raw": [b"\x00", None, b"\xff"]}
    types = {"id": pa.int32(), "price": pa.decimal128(23, 6), "c": pa.timestamp("us", "UTC"), "raw": pa.binary()}
    write(folder / "LOAD00000001.parquet", load, types, 1)
    shop = Lake(spark, tmp_path, (dms_table(),), {"format": "dms", "files": "landing/*/*/*.parquet"})
    shop.run()
    assert shop.types() == {"id": "int", "price": "decimal(23,6)", "c": "timestamp", "raw": "binary", "year": "string"}
    assert shop.rows("t", "id", "price", "raw") == [
        *[(1, exact, bytearray(b"\x00")), (2, None, None), (3, Decimal("1.000000"), bytearray(b"\xff"))]
    ]
    later = datetime.datetime(2021, 5, 5, 1, 2, 3, 456789)
    changes = {"Op": ["U", "D", "I", "U"], "id": [1, 2, 4, 4], "price": [exact, None, None, exact], "c": [later] * 4}
    more = {"Op": pa.string(), **types, "note": pa.string()}
    write(folder / "20210505-010203456.parquet", {**changes, "raw": [None] * 4, "note": ["a", "b", "c", "d"]}, more, 2)
    shop.run()
    assert shop.rows("t", "id", "price", "c", "note", "year") == [
        (1, exact, later, "a", "2021"),
        (3, Decimal("1.000000"), NOON, None, "2020"),
        (4, exact, later, "d", "2021"),
    ]
    # A source that truncates its table deletes its files: one may be gone before it is read.
    log = ParquetLog(str(folder))
    with log.lines(log.read(spark, files_of([(1, str(folder / "gone.parquet"))]))) as (lines, extent_of):
        assert (lines, len(extent_of(None).summary)) == ([], 3)


def dms_table() -> Any:
    return table(partition_by=shop_partition("c"), deletes="hard")


def write(path: Path, columns: dict[str, list[Any]], types: dict[str, pa.DataType], time: int) -> None:
    schema = pa.schema(list(types.items()))
    pq.write_table(pa.table({name: pa.array(columns[name], types[name]) for name in types}, schema=schema), path)
    os.utime(path, (1_700_000_000 + time, 1_700_000_000 + time))


def debezium(op: str, after: Any, before: Any) -> str:
    return event({"insert": "c", "update": "u", "delete": "d"}[op], after, before)


def dms(op: str, after: Any, before: Any) -> str:
    metadata = {"record-type": "data", "operation": op, "schema-name": "db", "table-name": "t"}
    images = {"data": after or before} | ({"before-image": before} if op == "update" else {})
    return json.dumps({**images, "metadata": metadata})


SPELT: dict[str, Callable[[str, Any, Any], str]] = {
    "debezium": debezium,
    "flink_cdc": debezium,
    "canal": lambda op, after, before: canal(
        op.upper(), [after or before], [before] if op == "update" else None, mysqlType={"id": "int", "v": "varchar(9)"}
    ),
    "maxwell": lambda op, after, before: maxwell(op, after or before, before if op == "update" else None),
    "dms": dms,
}
CHANGES = (
    ("insert", {"id": 1, "v": "a"}, None),
    ("insert", {"id": 2, "v": "b"}, None),
    ("update", {"id": 1, "v": "ü"}, {"id": 1, "v": "a"}),
    ("delete", None, {"id": 2, "v": "b"}),
    ("insert", {"id": 3, "v": None}, None),
    ("update", {"id": 4, "v": "renumbered"}, {"id": 3, "v": None}),
)


@pytest.mark.checklist(7)
@parametrize("form", suite=["debezium", "dms"], release=[form for form in SPELT if form not in ("debezium", "dms")])
def test_the_same_changes_in_every_format_end_in_the_same_table(spark: SparkSession, tmp_path: Path, form: str) -> None:
    declared = table(columns={"id": "int", "v": "string"})
    shop = Lake(spark, tmp_path, (declared,), {"format": form, "files": "landing/*.jsonl"})
    report = shop.ingest(*(SPELT[form](*change) for change in CHANGES))
    assert (report.dead_letters, shop.rows("t", "id", "v")) == (0, [(1, "ü"), (4, "renumbered")])


def test_dms_streams_name_their_table_in_the_message(spark: SparkSession, tmp_path: Path) -> None:
    """AWS DMS user guide, "Using Apache Kafka as a target"."""

    def message(operation: str, data: Any, kind: str = "data", **more: Any) -> str:
        metadata = {"timestamp": "2019-10-31T22:53:59.721201Z", "record-type": kind, "operation": operation}
        named = {"partition-key-type": "primary-key", "schema-name": "db", "table-name": "t", "transaction-id": 12}
        return json.dumps({"data": data, "metadata": {**metadata, **named}, **more})

    shop = Lake(spark, tmp_path, (table(),), {"format": "dms"})
    report = shop.ingest(
        message("load", {"id": 1, "fname": "val61s"}),
        message("create-table", {}, "control"),
        message("insert", {"id": 2, "fname": "b"}),
        message("update", {"id": 3, "fname": "c"}, **{"before-image": {"id": 2}}),
        message("delete", {"id": 1, "fname": "val61s"}),
        message("merge", {"id": 4}),
    )
    assert shop.rows() == [(3, "c")]
    assert (report.skipped, report.dead_letters) == ({"skip": 1}, 1)


LOCAL_TIMES = ("2024-07-01 12:00:00", "2024-01-01 12:00:00.5", "2024-10-27 02:30:00", "2024-03-31 02:30:00", None)
"""In Berlin: a summer and a winter time, the hour that the clock repeats, the one that it skips; and NULL."""
IN_UTC = ("2024-07-01 10:00", "2024-01-01 11:00:00.5", "2024-10-27 00:30", "2024-03-31 01:30")
MOMENTS = [*map(datetime.datetime.fromisoformat, IN_UTC), None]
AS_SENT = [text and datetime.datetime.fromisoformat(text) for text in LOCAL_TIMES]


def test_local_times_are_stored_in_utc_by_their_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """Keys and partitions are made of the stored value; a delete finds its row."""
    fields = [{"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
              {"field": "zoned", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
              {"field": "iso", "type": "string", "name": "io.debezium.time.IsoTimestamp"},
              {"field": "count", "type": "int64"}]  # fmt: skip
    by_hour = PartitionBy("at", "yyyyMMddHH", "hour")
    keyed = table(primary_key=("at",), partition_by=by_hour, time_zone="Europe/Berlin", columns={"count": "timestamp"})
    keyed = replace(keyed, units={"count": "seconds"})
    shop = Lake(spark, tmp_path, (keyed,))
    micros = [int((at - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1)) for at in AS_SENT if at]
    own = [{"at": at, "zoned": "2024-07-01T12:00:00Z", "iso": "2024-07-01T12:00:00Z", "count": 0} for at in micros]
    shop.ingest(*(event("c", row, fields=fields) for row in own))
    noon, ten, first = (datetime.datetime(*at) for at in ((2024, 7, 1, 12), (2024, 7, 1, 10), (1970, 1, 1)))
    kept = MOMENTS[:3]  # the time that the clock skips would be the key of another row
    assert ["cannot read 1711852200000000" in reason for _, _, reason, _ in shop.dead_letters()] == [True]
    hours = [f"{moment:%Y%m%d%H}" for moment in kept if moment]
    stored = shop.rows("t", "at", "zoned", "iso", "count", "hour")
    assert stored == sorted(((m, noon, ten, first, h) for m, h in zip(kept, hours, strict=True)), key=str)
    shop.ingest(event("d", before={"at": micros[0]}, fields=fields), event("c", {"at": -1, "iso": None}, fields=fields))
    before_1970 = datetime.datetime(1969, 12, 31, 22, 59, 59, 999999)
    assert {row[0] for row in shop.rows("t", "at")} == {*MOMENTS[1:3], before_1970}
    assert keyed.ingest is not None
    shop.tables = (replace(keyed, ingest=replace(keyed.ingest, time_zone="Asia/Shanghai")),)
    report = shop.ingest(event("c", {"at": 0}, fields=fields))
    assert "time_zone of ods.t was Europe/Berlin when the table was made" in str(report.tables[0].error)


@pytest.mark.release
def test_local_times_of_formats_without_a_schema_are_stored_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("canal", "debezium"):
        (tmp_path / name).mkdir()
    types = {"id": "bigint(20)", "at": "datetime(1)", "seen": "timestamp", "mine": "timestamp"}
    rows = [{"id": str(n), "at": text, "seen": text, "mine": text} for n, text in enumerate(LOCAL_TIMES)]
    berlin = table(partition_by=None, time_zone="Europe/Berlin")
    own_column = replace(berlin, time_zones={"mine": "Asia/Shanghai"})
    shop = Lake(spark, tmp_path / "canal", (own_column,), {"format": "canal"})
    shop.ingest(canal("INSERT", rows, mysqlType=types))
    (stored_at, seen, mine) = zip(*shop.rows("t", "at", "seen", "mine"), strict=True)
    assert sorted(stored_at, key=str) == sorted(MOMENTS, key=str), "datetime"
    assert sorted(seen, key=str) == sorted(AS_SENT, key=str), "MySQL's timestamp has a zone"
    assert datetime.datetime(2024, 7, 1, 4) in mine, "what a column declares"
    # Texts of a format that states no types: those with an offset of their own are moments already.
    shop = Lake(spark, tmp_path / "debezium", (table(time_zone="America/New_York", columns={"at": "timestamp"}),))
    texts = ["2024-07-01 12:00:00", "2024-07-01T12:00:00Z", "2024-07-01 12:00:00+02:00", "9999-12-31 23:59:59"]
    shop.ingest(*(event("c", {"id": n, "at": text}) for n, text in enumerate([*texts, "2024-07-01"])))
    day = datetime.datetime(2024, 7, 1)
    assert shop.rows() == [(n, day.replace(hour=hour)) for n, hour in ((0, 16), (1, 12), (2, 10), (4, 4))]
    assert ["cannot read 9999-12-31" in reason for _, _, reason, _ in shop.dead_letters()] == [True]
