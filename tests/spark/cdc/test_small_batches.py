"""The same log by Spark, without Spark, and by both in turn: the same rows with all that is hidden in them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tests.spark.ingest_lake as ingest_lake
from demo.shop.generate import generate
from sqlmesh_like.cdc.formats.message import BEGINS, ENDS, READS_AGAIN
from sqlmesh_like.cdc.stream.replay import replay
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import PartitionBy
from tests.levels import IS_RELEASE
from tests.spark.cdc.test_bad_events import BAD, TABLES
from tests.spark.ingest_lake import BY_MONTH, Lake, event, table

DECIMAL = {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"}
FIELDS = (
    {"field": "id", "type": "int32"},
    {**DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "10"}},
    {"field": "doc", "type": "string", "name": "io.debezium.data.Json"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
)
GROWN = (*FIELDS, {"field": "note", "type": "string"}, {"field": "big", "type": "int32", "default": 7})
GROWN_AGAIN = (
    *FIELDS[:2], {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}, *FIELDS[2:], GROWN[-2],
    {"field": "big", "type": "int64"}, {"field": "raw", "type": "bytes"},
    {"field": "flag", "type": "boolean", "default": True},
    {**DECIMAL, "field": "exact", "parameters": {"scale": "3", "connect.decimal.precision": "20"}},
    {"field": "real", "type": "float"}, {"field": "double", "type": "double"},
)  # fmt: skip
LEFT = re.compile(r"^\{\} |\"text\"|unavailable|: 10{19}|\"id\": \"\"|\"p\": 123|\"raw\": \"a\"|\"n2\"")
"""Bad events that are left to Spark."""
LETTERS = "shop__dead_letters"
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
    stray = event("u", {"id": 5, "oid": "o5", "create_time": "yesterday", "modify_time": None}, table="user_order")
    return [
        [*first, *(event("c", row, table="typed", fields=FIELDS) for row in rows)],
        [
            *second[:9],
            _truncate("product"),
            *second[9:half],
            _left_out(first, 0),
            "broken off {",
            stray.replace('"db": "db"', '"db": "test_db"'),
            event("u", {**typed(3, None, None), "big": "many"}, rows[2], "typed", GROWN),
            event("u", {**typed(1, "AA==", "{}"), "note": "new", "big": 7}, rows[0], "typed", GROWN),
            event("d", None, rows[1], "typed", FIELDS),
        ],
        [
            *map(_with_a_note, second[half:-9]),
            _left_out(first, 1),
            event("x", {"id": 1}),
            event("c", {"id": None}, table="typed"),
            event("d", None, {"id": 3}, "typed", FIELDS[:1]),
            _truncate("user_order"),
            *second[-9:],
            event("u", {**rows[2], "id": 4, **more}, rows[2], "typed", GROWN_AGAIN),
            event("c", typed(5, None, None), None, "typed", FIELDS),
        ],
    ]


def _left_out(lines: Sequence[str], number: int) -> str:
    """An update of a user that leaves the name out and has no row before: a stored row has it."""
    loaded = [json.loads(line) for line in lines if '"table": "user"' in line]
    message = [each for each in loaded if each["payload"]["after"]][number]
    row = {**message["payload"]["after"], "name": "__debezium_unavailable_value", "modify_time": "2030-01-01T00:00:00Z"}
    message["payload"] |= {"op": "u", "before": None, "after": row}
    return json.dumps(message)


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


def _stored(spark: SparkSession, lake: Lake, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """All rows of these tables, with hidden columns; of positions without the folder of the log."""
    result = {}
    for stored in names:
        frame = spark.read.format("hudi").load(lake.uri(stored))
        kept = [name for name in frame.columns if not name.startswith("_hoodie") or name == "_hoodie_is_deleted"]
        kept = [name for name in kept if stored != LETTERS or name not in ("ingested_at", "_sml_key")]  # of a path
        rows = [{name: str(row[name]).replace(str(lake.root), "") for name in kept} for row in frame.collect()]
        result[stored] = sorted(rows, key=str)
    return result


def _recorded(lake: Lake, name: str) -> list[Mapping[str, str]]:
    """A table's properties, and what its commits say but for the source's files and query."""
    commits = Timeline(lake.uri(name)).newest_first()
    extras = ({**commit.extra, "schema": str(schema_of(commit.extra["schema"]))} for commit in commits)
    said = [{key: text for key, text in extra.items() if key != "sml.ingest"} for extra in extras]
    return [Timeline(lake.uri(name)).properties, *said]


def test_both_engines_write_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches, results, schemas, recorded = _batches(tmp_path / "log"), {}, {}, {}
    reported: dict[str, list[Any]] = {}
    for name, engines in ENGINES.items():
        lake = Lake(spark, tmp_path / name.replace(" ", "_") / "shop", _tables())
        lake.root.mkdir(parents=True)
        for engine, lines in zip(engines, batches, strict=True):
            monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engine == "h")
            report = lake.ingest(*lines)
            assert not report.failed and not lake.reasons, name
            reported.setdefault(name, []).append((report.dead_letters, report.first_dead_letter))
        tables = [*(each.name for each in lake.tables), LETTERS]
        results[name] = _stored(spark, lake, tables)
        schemas[name] = {each: spark.read.format("hudi").load(lake.uri(each)).dtypes for each in tables}
        recorded[name] = {each: _recorded(lake, each) for each in tables}
        assert [len(list(Timeline(lake.uri(each.name)).data_commits)) for each in lake.tables] == [3] * 4
    for name in ENGINES:
        for each, rows in results["spark"].items():
            for own, theirs in zip(results[name][each], rows, strict=True):
                assert own == theirs, (name, each)
        assert reported[name] == reported["spark"], name
        assert schemas[name] == schemas["spark"], name
        assert recorded[name] == recorded["spark"], name


@pytest.mark.parametrize("engines", ENGINES.values())
def test_rows_that_are_read_again_and_do_not_fit_stay_whatever_batch_they_are_in(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engines: str
) -> None:
    types = {"id": "int", "part": "string", "n": "int"}
    by = PartitionBy("part", None, "parts")
    lake = Lake(spark, tmp_path, (table(columns=types, partition_by=by), table("u", columns=types, order_by=("n",))))

    def row(op: str, id: int, n: object, part: str = "a") -> list[str]:
        return [event(op, {"id": id, "part": part, "n": n}, table=name) for name in ("t", "u")]

    begins, ends = (
        [json.dumps({**json.loads(event("t", table=name)), READS_AGAIN: mark}) for name in ("t", "u")]
        for mark in (BEGINS, ENDS)
    )
    lake.ingest(*(line for id in (1, 2, 3, 4, 5) for line in row("c", id, id)))
    batches = (
        [*row("r", 1, 10, "b"), *row("r", 2, "x", "b")],
        [*row("r", 3, "x", "b"), *row("r", 6, 60, "b")],
        [*row("r", 4, 40, "b"), *ends, *row("u", 6, 61, "c")],
    )
    monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engines[0] == "h")
    lake.ingest(*begins)
    for engine, lines in zip(engines, batches, strict=True):
        monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engine == "h")
        assert lake.ingest(*lines).dead_letters == sum('"x"' in line for line in lines)
    same = [(1, "b", 10), (2, "a", 2), (3, "a", 3), (4, "b", 40), (6, "c", 61)]
    assert [row[:3] for row in lake.rows("t")] == [row[:3] for row in lake.rows("u")] == same
    # Once their type fits, they have the values that were read.
    wider = types | {"n": "string"}
    lake.tables = (table(columns=wider, partition_by=by), lake.tables[1])
    replay(spark, *lake.declared())
    assert [row[:3] for row in lake.rows("t")] == [
        (1, "b", "10"), (2, "b", "x"), (3, "b", "x"), (4, "b", "40"), (6, "c", "61")
    ]  # fmt: skip


@pytest.mark.release
def test_bad_events_become_the_same_letters(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each kind of bad event that this process knows; Spark ingests its letters again, and updates their table."""
    lines = [text for text, _ in BAD if isinstance(text, str) and len(text) < 10_000 and not LEFT.search(text)]
    assert len(lines) > 70
    results, dtypes = {}, {}
    for name, is_here in (("spark", False), ("here", True)):
        lake = Lake(spark, tmp_path / name / "shop", TABLES)
        lake.root.mkdir(parents=True)
        monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", is_here)
        assert lake.ingest(*lines, event("c", {"id": 0, "name": "good"})).dead_letters >= len(lines) - 2
        monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", not is_here)
        lake.ingest(event("c", {"id": "bad"}), "plain words")
        assert not lake.reasons
        results[name] = _stored(spark, lake, ("t", LETTERS))
        dtypes[name] = spark.read.format("hudi").load(lake.uri(LETTERS)).dtypes
        replayed = replay(spark, *lake.declared())
        assert replayed.dead_letters == len(results[name][LETTERS])
    for own, theirs in zip(results["here"][LETTERS], results["spark"][LETTERS], strict=True):
        assert own == theirs
    assert results["here"] == results["spark"] and dtypes["here"] == dtypes["spark"]
