"""Further ways in which sources write events: flattened Debezium, GoldenGate, CSV of DMS, zero dates, empty keys."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.project.nodes import CsvFormat, PartitionBy
from tests.spark.ingest_lake import Lake, event, table


@pytest.mark.release
def test_rows_of_an_empty_key_are_rows(spark: SparkSession, tmp_path: Path) -> None:
    both = table("both", primary_key=("id", "k"))
    lake = Lake(spark, tmp_path, (table("t", primary_key=("k",)), both))
    lake.ingest(
        event("c", {"k": "", "v": 1}),
        event("c", {"k": " ", "v": 2}),
        event("c", {"id": 1, "k": "", "v": 1}, table="both"),
        event("c", {"id": 1, "k": "x", "v": 2}, table="both"),
        event("c", {"id": 1, "k": None, "v": 3}, table="both"),
    )
    assert sorted(lake.rows()) == [("", 1), (" ", 2)]
    lake.ingest(
        event("u", {"k": "", "v": 5}, {"k": "", "v": 1}),
        event("u", {"id": 1, "k": "y", "v": 6}, {"id": 1, "k": "", "v": 1}, table="both"),
    )
    assert sorted(lake.rows()) == [("", 5), (" ", 2)]
    assert lake.rows("both") == [(1, "x", 2), (1, "y", 6)]
    assert [reason for _, _, reason, _ in lake.dead_letters()] == ["primary key k is missing or NULL"]


def test_zero_dates_are_null_where_that_is_declared(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"day": "date", "at": "timestamp", "note": "string"}
    lake = Lake(spark, tmp_path, (table(columns=columns, zero_dates="null"), table("strict", columns=columns)))
    row = {"id": 1, "day": "0000-00-00", "at": "0000-00-00 00:00:00.000000", "note": "0000-00-00"}
    lake.ingest(event("c", row), event("c", {**row, "id": 2, "day": "2024-00-10"}), event("c", row, table="strict"))
    assert lake.rows("t", "id", "day", "at", "note") == [(1, None, None, "0000-00-00")]
    reasons = [reason for _, _, reason, _ in lake.dead_letters()]
    assert reasons[0] == "column `day`: cannot read 2024-00-10 as date"
    assert "cannot read 0000-00-00 as date" in reasons[1] and "`zero_dates: null`" in reasons[1]


def flat(**row: object) -> str:
    return json.dumps(row, ensure_ascii=False)


def with_schema(fields: dict[str, str], **row: object) -> str:
    columns = [{"field": name, "type": kind} for name, kind in fields.items()]
    columns += [{"field": "day", "type": "int32", "name": "io.debezium.time.Date"}]
    return json.dumps({"schema": {"type": "struct", "fields": columns}, "payload": row})


def test_flattened_debezium_events(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, (table(order_by=("__lsn",)),), {"format": "debezium_flat"})
    tail = {"__table": "t", "__db": "db", "__deleted": "false"}
    fields = {"id": "int32", "status": "string", "__op": "string", "__deleted": "string", "__lsn": "int64"}
    fields |= {"__table": "string", "__db": "string"}
    lake.ingest(
        with_schema(fields, id=1, status="a", day=19723, __op="c", __lsn=10, **tail),
        with_schema(fields, id=2, status="b", day=None, __op="r", __lsn=11, **tail),
    )
    lake.ingest(
        with_schema(fields, id=1, status="c", day=19724, __op="u", __lsn=20, **tail),
        with_schema(fields, id=2, status="b", day=None, __op="d", __lsn=21, **{**tail, "__deleted": "true"}),
        with_schema(fields, id=1, status="late", day=1, __op="u", __lsn=15, **tail),
        "null",
        flat(op="c", before=None, after={"id": 7}, source={"db": "db", "table": "t"}),
    )
    assert [(*row[:2], str(row[2])) for row in lake.rows("t", "id", "status", "day")] == [(1, "c", "2024-01-02")]
    assert list(lake.types()) == ["id", "status", "__lsn", "day"]
    reasons = [reason for _, _, reason, _ in lake.dead_letters()]
    assert "delete.tombstone.handling.mode=rewrite" in reasons[0] and "format: debezium" in reasons[1]


@pytest.mark.release
def test_flattened_events_under_the_other_format_name_theirs(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, (table(),))
    document = {"op": "c", "after": '{"a": 1}', "source": {"db": "db", "collection": "people"}}
    lake.ingest(flat(id=1, status="open", __op="c", __deleted="false"), json.dumps(document))
    reasons = [reason for _, _, reason, _ in lake.dead_letters()]
    assert "the format is debezium_flat" in reasons[0] and "ExtractNewDocumentState" in reasons[1]


@pytest.mark.release
def test_documents_of_mongodb_as_rows(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, (table("t", primary_key=("_id",)),), {"format": "debezium_flat"})
    added = {"__db": "db", "__collection": "t", "__rs": "rs0"}
    lake.ingest(
        flat(_id="6a", name="é", tags=[], __op="c", __deleted="false", **added),
        flat(_id="6b", name="b", tags=["x"], __op="r", __deleted="false", **added),
        flat(_id="6a", name=None, tags=["y"], __op="u", __deleted="false", **added),
        flat(_id="6b", __op="d", __deleted="true", **added),
    )
    assert lake.rows("t", "_id", "name", "tags") == [("6a", None, '["y"]')]
    assert list(lake.types()) == ["_id", "name", "tags"]


def ogg(op: str, before: object, after: object) -> str:
    return json.dumps({"table": "DB.T", "op_type": op, "pos": "1", "primary_keys": ["ID"], "before": before,
                       "after": after})  # fmt: skip


@pytest.mark.release
def test_golden_gate_json(spark: SparkSession, tmp_path: Path) -> None:
    declared = table(
        database="DB",
        table="T",
        primary_key=("ID",),
        updates="partial",
        partition_by=PartitionBy("REGION", None, "part"),
        columns={"ID": "bigint", "REGION": "string", "PRICE": "decimal(10,2)", "AT": "timestamp"},
    )
    lake = Lake(spark, tmp_path, (declared,), {"format": "ogg"})
    lake.ingest(
        ogg("I", None, {"ID": 1, "REGION": "eu", "PRICE": 12.34, "AT": "2024-05-01 10:00:00.000000"}),
        ogg("I", None, {"ID": 2, "REGION": "us", "PRICE": 5, "AT": None}),
        ogg("I", None, {"ID": 3, "REGION": "us", "PRICE": 6, "AT": None}),
    )
    lake.ingest(
        ogg("U", {"ID": 1, "PRICE": 12.34}, {"ID": 1, "PRICE": 13}),
        ogg("U", {"ID": 2}, {"ID": 2, "REGION": "eu"}),
        ogg("D", {"ID": 3}, None),
        ogg("U", {"ID": 1}, {"ID": 1, "PRICE": None, "PRICE_isMissing": True}),
    )
    assert [tuple(map(str, row)) for row in lake.rows("t", "ID", "REGION", "PRICE", "part")] == [
        ("1", "eu", "13.00", "eu"),
        ("2", "eu", "5.00", "eu"),
    ]
    assert "_isMissing" in lake.dead_letters()[0][2]


def test_dms_csv_files(spark: SparkSession, tmp_path: Path) -> None:
    types = {"id": "bigint", "name": "string", "price": "decimal(10,2)", "at": "timestamp"}
    lake = Lake(spark, tmp_path, (table(columns=types),), {"format": "dms", "files": "landing/*/*/*.csv"})

    def land(number: int, text: str, folder: str = "db/t", name: str = "") -> None:
        path = tmp_path / "landing" / folder / (name or f"{number}.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    land(1, '1,"a ""b"",\nc",1.50,2024-05-01 10:00:00.000000\n2,NULL,NULL,NULL\n3,,7,NULL\n4,x\n')
    land(2, "U,1,張三,2,2024-05-02 10:00:00\nD,2,NULL,NULL,NULL\nI,5,e,0.5,NULL\n")
    land(3, "1,2\n", "db/other")
    report = lake.run()
    assert [(i, n, str(p)) for i, n, p, _ in lake.rows("t", *types)] == [
        (1, "張三", "2.00"), (3, "", "7.00"), (5, "e", "0.50"),
    ]  # fmt: skip
    assert report.skipped == {"undeclared db.other": 1}
    reasons = {position: reason for _, position, reason, _ in lake.dead_letters()}
    assert list(reasons) == [4] and "not a record of this file's columns" in reasons[4]
    lake.settings = {"format": "dms", "files": "landing/*/*/*.csv.gz", "csv": CsvFormat(True, "", ";")}
    land(4, 'Op;at;id;name;neu\nU;;3;"";ja\n', name="4.csv.gz")
    lake.run()
    assert lake.rows("t", "id", "name", "price", "at", "neu")[1] == (3, "", None, None, "ja")
