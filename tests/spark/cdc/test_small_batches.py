"""The same log by Spark, without Spark, and by both in turn: the same rows with all that is hidden in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tests.spark.ingest_lake as ingest_lake
from demo.shop.generate import generate
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.timeline import Timeline
from tests.levels import IS_RELEASE
from tests.spark.ingest_lake import BY_MONTH, Lake, event, table

DECIMAL = {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
FIELDS = (
    {"field": "id", "type": "int32"},
    {**DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"field": "doc", "type": "string", "name": "io.debezium.data.Json"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
)
GROWN = (*FIELDS, {"field": "note", "type": "string"}, {"field": "big", "type": "int32"})
GROWN_AGAIN = (
    *FIELDS[:2], {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}, *FIELDS[2:], GROWN[-2],
    {"field": "big", "type": "int64"}, {"field": "raw", "type": "bytes"}, {"field": "flag", "type": "boolean"},
    {**DECIMAL, "field": "exact", "parameters": {"scale": "3", "connect.decimal.precision": "20"}},
    {"field": "real", "type": "float"}, {"field": "double", "type": "double"},
)  # fmt: skip
ENGINES = {"spark": "sss", "in turn": "hsh"} | ({"here": "hhh", "the other way": "shs"} if IS_RELEASE else {})
"""Which engine takes each of three batches."""


def _batches(root: Path) -> list[list[str]]:
    """A shop's log in two parts, and a table of typed values beside it."""
    generate(root, users=20, products=6, orders=40, changes=80, seed=5)
    parts = [
        [path.read_text(encoding="utf-8").splitlines() for path in sorted((root / part).iterdir())]
        for part in ("part1", "part2")
    ]
    first, second = ([line for lines in part for line in lines] for part in parts)
    half = len(second) // 2

    def typed(id: int, price: str | None, doc: str | None) -> dict[str, object]:
        return {"id": id, "price": price, "doc": doc, "at": 1_700_000_000_000_000 + id}

    rows = [typed(1, "fQ==", '{"b": 1.50,  "a": [1, 2]}'), typed(2, None, None), typed(3, "gw==", '"text"')]
    more = {
        "day": 9,
        "note": None,
        "big": 2**40,
        "raw": "AP8=",
        "flag": True,
        "exact": "gw==",
        "double": 0.1,
        "real": None,
    }
    return [
        [*first, *(event("c", row, table="typed", fields=FIELDS) for row in rows)],
        [
            *second[:9],
            _truncate("product"),
            *second[9:half],
            event("u", {**typed(1, "AA==", "{}"), "note": "new", "big": 7}, rows[0], "typed", GROWN),
            event("d", None, rows[1], "typed", FIELDS),
        ],
        [
            _truncate("user_order"),
            *map(_with_a_note, second[half:]),
            event("u", {**rows[2], "id": 4, **more}, rows[2], "typed", GROWN_AGAIN),
            event("c", typed(5, None, None), None, "typed", FIELDS),
        ],
    ]


def _truncate(table: str) -> str:
    return event("t", table=table).replace('{"db": "db"', '{"db": "test_db"')


def _with_a_note(line: str) -> str:
    """An event of the shop, with a new column where it is of a certain order."""
    return line.replace('{"id": 3, "oid"', '{"id": 3, "note": "new", "oid"')


def _tables() -> tuple[Any, ...]:
    shop = {"database": "test_db", "order_by": ("modify_time",), "partition_by": BY_MONTH}
    types = {"create_time": "timestamp", "modify_time": "timestamp"}
    return (
        table("user", columns={"age": "int"}, **shop),
        table("product", columns=types, **{**shop, "primary_key": ("pid",), "order_by": ()}),
        table("user_order", columns=types, **shop),
        table("typed"),
    )


def _stored(spark: SparkSession, lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, with hidden columns; of positions without the folder of the log."""
    result = {}
    for each in lake.tables:
        frame = spark.read.format("hudi").load(lake.uri(each.name))
        kept = [name for name in frame.columns if not name.startswith("_hoodie") or name == "_hoodie_is_deleted"]
        rows = [{name: str(row[name]).replace(str(lake.root), "") for name in kept} for row in frame.collect()]
        result[each.name] = sorted(rows, key=lambda row: row["_sml_key"])
    return result


def _recorded(lake: Lake, name: str) -> list[dict[str, str]]:
    """What the commits of a table say, but for the source's files and query."""
    commits = Timeline(lake.uri(name)).newest_first()
    extras = ({**commit.extra, "schema": str(schema_of(commit.extra["schema"]))} for commit in commits)
    return [{key: text for key, text in extra.items() if key != "sml.ingest"} for extra in extras]


def test_both_engines_write_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, results, schemas, recorded = _batches(tmp_path / "log"), {}, {}, {}
    for name, engines in ENGINES.items():
        lake = Lake(spark, tmp_path / name.replace(" ", "_"), _tables())
        lake.root.mkdir()
        for engine, lines in zip(engines, batches, strict=True):
            monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engine == "h")
            report = lake.ingest(*lines)
            assert not report.failed and report.dead_letters == 0 and not lake.reasons, name
        results[name] = _stored(spark, lake)
        schemas[name] = {each.name: spark.read.format("hudi").load(lake.uri(each.name)).dtypes for each in lake.tables}
        recorded[name] = {each.name: _recorded(lake, each.name) for each in lake.tables}
        assert [len(list(Timeline(lake.uri(each.name)).data_commits)) for each in lake.tables] == [3] * 4
    for name in ENGINES:
        assert results[name] == results["spark"], name
        assert schemas[name] == schemas["spark"], name
        assert recorded[name] == recorded["spark"], name
