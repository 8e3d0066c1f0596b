"""Every kind of bad event in one stream: each is a dead letter with its reason, the good rows between are in place."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.spark.ingest_lake import Lake, event, table

TYPES = {
    "id": "int",
    "big": "bigint",
    "f": "float",
    "d": "double",
    "p": "decimal(10,2)",
    "flag": "boolean",
    "day": "date",
    "at": "timestamp",
    "raw": "binary",
    "create_time": "timestamp",
}
NO_ROW = "not a JSON object of a change event"
KEY = "primary key id is missing or NULL"


def row(**changed: Any) -> str:
    return event("c", {"id": 1, **changed})


def unread(column: str, shown: object, kind: str) -> str:
    return f"column `{column}`: cannot read {shown} as {kind}"


def stated(**field: Any) -> str:
    """An event whose schema block says this of a column."""
    fields = [{"field": "id", "type": "int32"}, {"field": "n", **field}]
    return event("c", {"id": 1, fields[1]["field"]: "x"}, table="stated", fields=fields)


BAD: list[tuple[str | bytes, str]] = [
    ("{not json", NO_ROW),
    ("plain words", NO_ROW),
    ('{"op": "c", "after": {"id": 1}', NO_ROW),
    ("[1, 2]", NO_ROW),
    ('"text"', NO_ROW),
    ("42", NO_ROW),
    ("true", NO_ROW),
    ("<xml/>", NO_ROW),
    ("{} {}", "no `op`"),
    ("{}", "no `op`"),
    ('{"payload": null}', "no `op`"),
    ('{"id": 1, "name": "a row without an envelope"}', "no `op`"),
    ('{"op": null, "after": {"id": 1}}', "no `op`"),
    ('{"type": "INSERT", "data": [{"id": 1}]}', "no `op`"),
    (event("x", {"id": 1}), "unknown op `x`"),
    (event("", {"id": 1}), "unknown op ``"),
    (event("C", {"id": 1}), "unknown op `C`"),
    (event("create", {"id": 1}), "unknown op `create`"),
    ('{"op": 1, "after": {"id": 1}}', "unknown op `1`"),
    ('{"op": "c", "after": {"id": 1}}', "no `source.table`"),
    ('{"op": "c", "after": {"id": 1}, "source": {"db": "db"}}', "no `source.table`"),
    ('{"op": "c", "after": {"id": 1}, "source": {"db": "db", "table": ""}}', "no `source.table`"),
    ('{"op": "c", "after": {"id": 1}, "source": "t"}', "no"),
    ('{"op": "t", "source": {"db": "db"}}', "no `source.table`"),
    (event("c"), "op `c` without `after`"),
    (event("u", None, {"id": 1}), "op `u` without `after`"),
    (event("r"), "op `r` without `after`"),
    (event("d", {"id": 1}), "op `d` without `before`"),
    (event("c", [1]), "`after` is not a row"),
    (event("c", "text"), "`after` is not a row"),
    (event("c", 7), "`after` is not a row"),
    (event("d", None, [1]), "`before` is not a row"),
    (event("c", {}), KEY),
    (event("c", {"name": "a"}), KEY),
    (event("c", {"id": None}), KEY),
    (event("d", None, {"big": 1}), KEY),
    (
        event("c", {"ID": 1}, table="cased"),
        "column ID: another column of the row is ID in the table, or differs in case",
    ),
    (event("c", {"id": 1, "Name": "a", "name": "b"}, table="cased"), "column Name: another column of the row is Name"),
    (event("c", {"id": 1, "a-b": 1, "a_b": 2}, table="alike"), "column a-b: another column of the row is a_b"),
    (event("c", {"id": 1, "it's?": 1, "it_s_": 2}, table="alike"), "column it's?: another column of the row is it_s_"),
    (row(id="abc"), unread("id", "abc", "int")),
    (row(id=3_000_000_000), unread("id", 3000000000, "int")),
    (row(id=-3_000_000_000), unread("id", -3000000000, "int")),
    (row(id=""), unread("id", "", "int")),
    (row(id={"a": 1}), unread("id", '{"a":1}', "int")),
    (row(id=[1]), unread("id", "[1]", "int")),
    (row(id=True), unread("id", "true", "int")),
    (row(big=10**19), unread("big", "10000000000000000000", "bigint")),
    (row(big="12x"), unread("big", "12x", "bigint")),
    (row(f="wide"), unread("f", "wide", "float")),
    (row(d="1,5"), unread("d", "1,5", "double")),
    (row(p=123456789.5), "column `p`: cannot read"),
    *((row(p=text), unread("p", text, "decimal(10,2)")) for text in ("1,5", ",5", "5,", "1,234.5", "-1,5E1")),
    (row(p="1,5").replace(",5", "\\u002c5"), unread("p", "1,5", "decimal(10,2)")),
    (row(p="1.234"), unread("p", "1.234", "decimal(10,2)")),
    (row(p="MOA="), unread("p", "MOA=", "decimal(10,2)") + " (base64 without a schema? set decimal.handling.mode"),
    (row(p={"scale": 2, "value": "MOA="}), "column `p`: cannot read"),
    (row(flag="maybe"), unread("flag", "maybe", "boolean")),
    (row(flag=7), unread("flag", 7, "boolean")),
    (row(day="2022-13-45"), unread("day", "2022-13-45", "date")),
    (row(day="2022-02-30"), unread("day", "2022-02-30", "date")),
    (row(day="yesterday"), unread("day", "yesterday", "date")),
    (row(day="12:30"), unread("day", "12:30", "date")),
    (
        row(day="2024-02-29 10:30"),
        unread("day", "2024-02-29 10:30", "date") + ": with a time of day? declare the column as timestamp",
    ),
    (row(day="2024-02-29 noon"), unread("day", "2024-02-29 noon", "date")),
    (row(day="0000-00-00"), "column `day`: cannot read"),
    (row(day="0000-01-01"), unread("day", "0000-01-01", "date")),
    (row(day="12022-01-01"), unread("day", "12022-01-01", "date")),
    (row(day=86400000), unread("day", 86400000, "date")),
    (row(at="12022-01-01T00:00:00Z"), unread("at", "12022-01-01T00:00:00Z", "timestamp")),
    (row(at="12:30"), unread("at", "12:30", "timestamp")),
    (row(at="2022-01-01T25:00:00Z"), "column `at`: cannot read"),
    (row(at=True), unread("at", "true", "timestamp")),
    (row(at=10**18), "column `at`: cannot read"),
    (row(raw="not base64!"), "column `raw`: cannot read"),
    (row(raw="a"), "column `raw`: cannot read a as binary"),
    (b'{"op": "c", "after": {"id": 1, "name": "\xff\xfe"}, "source": {"db": "db", "table": "t"}}', "invalid UTF-8"),
    (b"\xc3\x28", "invalid UTF-8"),
    (row(name="").replace('"name": ""', '"name": ' + "[" * 1500 + "]" * 1500), "JSON nested more than 100 deep"),
    ('{"op": "c", "after": {"id": 1, "name": "' + "x" * 10_000_000, NO_ROW),
    (event("u", {"id": 1}, {"id": "old"}), unread("id", "old", "int")),
    (event("d", None, {"id": 1}, table="ordered"), "a delete whose `before` has only the key has no order"),
    (event("u", {"id": 1}, {"id": 1}, table="keyless"), "updates and deletes need a primary_key"),
    (event("d", None, {"id": 1}, table="keyless"), "updates and deletes need a primary_key"),
    (event("t", table="shard_1"), "a truncate of one of several merged tables"),
    (
        event("u", {"id": 77, "x": "__debezium_unavailable_value"}, table="toast"),
        "x: the source did not log this value, and no earlier version of the row is known (its key changed? let",
    ),
    (stated(type="int32"), unread("n", "x", "int")),
    (stated(type="bytes", field="n2"), "column `n2`: cannot read"),
    (stated(type="bytes", name="org.apache.kafka.connect.data.Decimal", parameters={"scale": "two"}), "its schema"),
    (stated(type="int32", name="io.debezium.time.Date", field="n3"), unread("n3", "x", "date")),
    (event("c", {"id": 1}, table="stated", fields=[{"type": "int32"}]), "its schema cannot be read"),
]


TABLES = (
    table(columns=TYPES),
    table("ordered", order_by=("m",), columns={"m": "int"}),
    table("keyless", primary_key=()),
    table("cased", columns={"id": "int", "name": "string"}),
    table("alike"),
    table("shards", table=r"shard_\d"),
    table("toast"),
    table("stated"),
)


def test_every_kind_of_bad_event_is_kept_with_its_reason(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, TABLES)
    good = event("c", {"id": 0, "name": "good"}).encode()
    # Nothing is wrong with values that are spelt as texts, but they are read one by one.
    spelt = event(
        "c", {"id": "2", "big": "7", "d": "1.5", "p": "1.20", "flag": "true", "at": "2022-07-03T12:00:00.123Z"}
    ).encode()
    lines = [line for bad, _ in BAD for line in (bad.encode() if isinstance(bad, str) else bad, good)]
    shop.landing.mkdir()
    (shop.landing / "0.jsonl").write_bytes(b"\n".join([*lines, spelt]) + b"\n")
    report = shop.run()
    letter_rows = {position: reason for _, position, reason, _ in shop.dead_letters()}
    wrong = [
        (number, text[:90], reason, letter_rows.get(2 * number + 1))
        for number, (text, reason) in enumerate(BAD)
        if reason not in letter_rows.get(2 * number + 1, "no letter")
    ]
    assert wrong == []
    assert len(letter_rows) == report.dead_letters == len(BAD) >= 60
    assert shop.rows("t", "id", "name") == [(0, "good"), (2, None)]
    at = datetime.datetime(2022, 7, 3, 12, 0, 0, 123000)
    assert shop.rows("t", "id", "big", "d", "p", "flag", "at")[1] == (2, 7, 1.5, Decimal("1.20"), True, at)
    assert not report.failed
