"""Ingestion on real Hudi: types exact, schema growing, nothing unreadable ingested silently."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.frames import literal_frame
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import PartitionBy
from tests.spark.ingest_lake import Lake, base64_decimal, event, report_of, table

DECIMAL = {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "6"}}
ID = {"field": "id", "type": "int32"}
FIELDS = (
    ID,
    {"field": "n", "type": "int32"},
    {**DECIMAL, "field": "d"},
    {"field": "day", "type": "int32", "name": "io.debezium.time.Date"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "took", "type": "int64", "name": "io.debezium.time.MicroTime"},
)
EXACT = Decimal("12345678901234567.891234")
UTC_NOON = datetime.datetime(2022, 7, 3, 12, 0, 0, 123456)


@pytest.mark.checklist(26, 27)
def test_types_come_from_the_schema_and_only_widen(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),))
    micros = 1656849600123456
    values = {"n": 7, "d": base64_decimal(int(EXACT.scaleb(6))), "day": 19176, "at": micros, "took": 3_600_000_001}
    # With `decimal.format=NUMERIC` a decimal is a number of JSON.
    numeric = event("c", {"id": 5, "n": 5, "d": 0}, fields=FIELDS).replace('"d": 0', f'"d": {EXACT}')
    shop.ingest(
        event("c", {"id": 1, **values}, fields=FIELDS), numeric, event("c", {"id": 6, "n": 6, "d": 1234}, fields=FIELDS)
    )
    kinds = {"id": "int", "n": "int", "d": "decimal(38,6)", "day": "date", "at": "timestamp", "took": "string"}
    assert shop.types() == kinds
    first = (1, 7, EXACT, datetime.date(2022, 7, 3), UTC_NOON, "01:00:00.000001")
    rest = [(5, 5, EXACT, None, None, None), (6, 6, Decimal(1234), None, None, None)]
    assert shop.rows() == [first, *rest]
    wider = (ID, {"field": "n", "type": "int64"}, *FIELDS[2:4], {"field": "neu", "type": "string"})
    shop.ingest(
        event("c", {"id": 2, "n": 5_000_000_000, "d": base64_decimal(-1), "day": None, "neu": "ü"}, fields=wider),
        # An event of the old schema in the same batch, and one without any: columns that they lack are NULL.
        event("c", {"id": 3, **values}, fields=FIELDS),
        event("c", {"id": 4, "n": 8}),
    )
    # JSON alone cannot say that a number will always fit an int.
    assert shop.types() == {**kinds, "id": "bigint", "n": "bigint", "neu": "string"}
    assert shop.rows() == [
        (*first, None),
        (2, 5_000_000_000, Decimal("-0.000001"), None, None, None, "ü"),
        (3, *first[1:], None),
        (4, 8, None, None, None, None, None),
        *((*row, None) for row in rest),
    ]


@pytest.mark.checklist(35)
def test_what_cannot_be_read_is_a_dead_letter_and_the_rest_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"id": "int", "price": "decimal(23,6)", "day": "date", "at": "timestamp"}
    shop = Lake(spark, tmp_path, (table(columns=columns),))
    report = shop.ingest(
        event("c", {"id": 1, "price": str(EXACT), "at": "2022-07-03T12:00:00.123456Z"}),
        event("c", {"id": 2, "price": 0}).replace('"price": 0', f'"price": {EXACT}'),
        "{not json",
        event("c", {"id": None, "price": 1}),
        event("c", {"price": 1}),
        event("c", {"id": 3, "day": "2022-13-45"}),
        event("c", {"id": 4, "price": "1234567890123456789.0"}),
        event("c", {"id": 5, "price": 1.1234567}),
        event("c", {"id": 3_000_000_000}),
        event("c", {"id": 6, "at": "12:30"}),
        event("x", {"id": 7}),
        event("c", {"id": 8}, table="unknown"),
        '{"ts_ms": 5}',
        "",
        event("c", {"id": 9, "day": "2022-07-03", "price": 1.5}),
    )
    assert shop.rows("t", "id", "price", "day", "at") == [
        (1, EXACT, None, UTC_NOON),
        (2, EXACT, None, None),
        (9, Decimal("1.500000"), datetime.date(2022, 7, 3), None),
    ]
    letter_rows = {position: reason for _, position, reason, _ in shop.dead_letters()}
    assert {3: "not a JSON object of a change event", 11: "unknown op `x`"}.items() <= letter_rows.items()
    assert letter_rows[4] == letter_rows[5] == "primary key id is missing or NULL"
    assert letter_rows[6] == "column `day`: cannot read 2022-13-45 as date"
    assert "column `price`" in letter_rows[7] and "column `price`" in letter_rows[8]
    assert "column `id`: cannot read 3000000000 as int" in letter_rows[9] and "column `at`" in letter_rows[10]
    assert report.dead_letters == len(letter_rows) == 9
    assert report.skipped == {"undeclared db.unknown": 1, "skip": 1, "tombstone": 1}
    assert report_of(report).upserts == 3
    assert ("0000.jsonl", "{not json") in {(file, text) for file, _, _, text in shop.dead_letters()}


def test_on_bad_record_fail_stops_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),), {"on_bad_record": "fail"})
    with pytest.raises(IngestError) as caught:
        shop.ingest(event("c", {"id": 1}), "{not json")
    assert str(caught.value).startswith("landing/0000.jsonl:2: not a JSON object")
    assert not Path(shop.uri()).exists()


@pytest.mark.checklist(23)
def test_soft_deletes_keep_the_row_marked(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(deletes="soft"),))
    shop.ingest(event("c", {"id": 1}), event("c", {"id": 2}), event("d", None, {"id": 2}))
    assert shop.rows("t", "id", "_sml_deleted") == [(1, False), (2, True)]


def test_a_row_that_is_deleted_by_its_key_alone_keeps_its_values_and_its_partition(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In one batch with other versions of the row, and by values of the table under a column's former name."""
    partitions = PartitionBy("kind", None, "part")
    shop = Lake(spark, tmp_path, (table(deletes="soft", partition_by=partitions),), delta_engine="spark")
    shop.ingest(*(event("c", {"id": id, "kind": kind, "mail": kind}) for id, kind in ((1, "a"), (2, "b"), (3, "c"))))
    shop.tables = (replace(shop.tables[0], renamed={"email": "mail"}),)
    new = {"id": 2, "kind": "n", "email": "new"}
    shop.ingest(event("d", None, {"id": 1}), event("u", new), event("d", None, {"id": 2}), event("d", None, {"id": 9}))
    expected = [(1, "a", "a", True, "a"), (2, "n", "new", True, "n"), (3, "c", "c", False, "c")]
    shown = ("id", "kind", "email", "_sml_deleted", "part")
    assert shop.rows("t", *shown) == [*expected, (9, None, None, True, "__null__")]
    again = {"id": 2, "kind": "b", "email": "again"}
    shop.ingest(event("c", again), event("d", None, {"id": 2}), event("c", {**again, "id": 9}), event("d", None, new))
    expected[1] = (2, "n", "new", True, "n")
    assert shop.rows("t", *shown) == [*expected, (9, "b", "again", False, "b")]


def test_deletions_of_retention_leave_rows_as_they_are_and_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(deletes="retention"),))
    shop.ingest(event("c", {"id": 1, "v": "a"}), event("c", {"id": 2, "v": "b"}))
    [report] = shop.ingest(event("d", None, {"id": 2}), event("u", {"id": 1, "v": "c"}, {"id": 1, "v": "a"})).tables
    assert shop.rows("t", "id", "v") == [(1, "c"), (2, "b")]
    assert (report.upserts, report.deletes, report.retained, report.dead_letters) == (1, 0, 1, 0)
    [report] = shop.ingest(event("d", None, {"id": 1}), event("t", None)).tables
    assert report.retained == 2 and shop.rows("t", "id", "v") == [(1, "c"), (2, "b")]
    shop.ingest(event("c", {"id": 2, "v": "again"}))
    assert shop.rows("t", "id", "v") == [(1, "c"), (2, "again")]


def test_a_column_of_nulls_has_no_type_yet_and_one_of_empty_values_is_text(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),))
    shop.ingest(
        event("c", {"id": 1, "late": None, "deep": {"a": [1, "ü"]}, "note": "", "tags": [], "more": {"a": None}})
    )
    assert shop.types() == {"id": "bigint", **dict.fromkeys(("deep", "note", "tags", "more"), "string")}
    assert shop.rows() == [(1, '{"a":[1,"ü"]}', "", "[]", '{"a":null}')]


def test_stored_rows_get_the_default_of_a_column_that_was_added_not_null(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),))
    text = {"field": "v", "type": "string"}
    shop.ingest(*(event("c", {"id": id, "v": "a"}, fields=(ID, text)) for id in (1, 2)))
    age = {"field": "age", "type": "int32", "optional": False, "default": 18}
    price = {**DECIMAL, "field": "price", "optional": False, "default": base64_decimal(int(EXACT.scaleb(6)))}
    # The source stores 0 where there is no default to state; of that no event tells.
    bare = {"field": "bare", "type": "int32", "optional": False}
    new = {"age": 30, "id": 2, "price": base64_decimal(-1), "v": "b", "bare": 7}
    shop.ingest(event("u", new, {**new, "v": "a"}, fields=(age, ID, price, text, bare)))
    assert shop.rows("t", "id", "v", "age", "price", "bare") == [
        (1, "a", 18, EXACT, None),
        (2, "b", 30, Decimal("-0.000001"), 7),
    ]


def test_rows_known_in_python_are_a_frame_with_every_sign_kept(spark: SparkSession) -> None:
    rows = [("file:///a 'b' \\ \"c\"/ü%20{x}.jsonl", 2**40), ("", -1)]
    assert [tuple(row) for row in literal_frame(spark, rows, "file STRING, block BIGINT").collect()] == rows
    assert literal_frame(spark, [], "file STRING, block BIGINT").dtypes == [("file", "string"), ("block", "bigint")]
