"""A database compared with the lake: sums of chunks, down to rows and columns, with DuckDB as both sides."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import duckdb
import pytest

from sqlmesh_like.cdc.formats.debezium_types import schema_fields
from sqlmesh_like.cdc.sources.database.comparison import narrowing
from sqlmesh_like.cdc.sources.database.comparison.columns import compared_columns
from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart, DifferentKeys
from sqlmesh_like.cdc.sources.database.comparison.delete_events import delete_event
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES, LAKE, CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison, different_row
from sqlmesh_like.cdc.sources.database.comparison.lake_rows import LakeRows
from sqlmesh_like.cdc.sources.database.comparison.local_times import moment_of_local
from sqlmesh_like.cdc.sources.database.comparison.narrowing import narrow, spans_of
from sqlmesh_like.cdc.sources.database.comparison.repair import why_not_repaired
from sqlmesh_like.cdc.sources.database.comparison.side import Key, Side, Span
from sqlmesh_like.cdc.sources.database.comparison.unread_log import unread_rows
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.duckdb.duck_connection import failing_reads
from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.names import Column, Schema
from tests.unit.cdc.test_database_source import table

STORED: Schema = (
    Column("id", "int"), Column("name", "string"), Column("price", "decimal(10,2)"), Column("rate", "double"),
    Column("made", "timestamp"), Column("data", "binary"),
)  # fmt: skip
DECLARED = (("id", "int(11)"), ("name", "varchar(20)"), ("price", "decimal(8,2)"), ("rate", "double"),
            ("made", "datetime(6)"), ("data", "blob"))  # fmt: skip
COLUMNS = compared_columns("mysql", table("item"), DECLARED, STORED)
ROWS = """select i::int as id, 'name ' || i as name, (i / 7)::decimal(10,2) as price, i * 0.0::double as rate,
 timestamp '2024-01-01' + to_microseconds(i) as made, i::varchar::blob as data from range(1000) t(i)"""
PLANTED = {
    "update lost set name = 'new' where id = 1": ("id=1", None, ("name", "'name 1'", "'new'")),
    "delete from lost where id = 2": ("id=2", "database", None),
    "insert into lost select 2000, null, null, null, null, null": ("id=2000", "lake", None),
    "update lost set price = price + 0.01 where id = 4": ("id=4", None, ("price", "0.57", "0.58")),
    "update lost set name = name || ' ' where id = 5": ("id=5", None, ("name", "'name 5'", "'name 5 '")),
    # an update would not write what it takes for equal
    "create or replace table lost as select * replace (if(id = 6, '-0'::double, rate) as rate) from lost": (
        "id=6", None, ("rate", "0.0", "-0.0"),
    ),
    "update lost set made = made + to_microseconds(1) where id = 7": (
        "id=7", None, ("made", "2024-01-01 00:00:00.000007", "2024-01-01 00:00:00.000008"),
    ),
    "update lost set name = '' where id = 8": ("id=8", None, ("name", "'name 8'", "''")),
    "update lost set name = null where id = 9": ("id=9", None, ("name", "'name 9'", "NULL")),
    "update lost set data = 'x' where id = 10": ("id=10", None, ("data", "x'3130'", "x'78'")),
}  # fmt: skip


@pytest.fixture
def sides() -> tuple[Side, Side]:
    """The same rows twice; `lost` is the lake's."""
    db = duckdb.connect()
    db.execute(f"create table kept as {ROWS}; create table lost as {ROWS}")

    def side(name: str) -> Side:
        return Side(LAKE, name, COLUMNS.lake, COLUMNS.key, lambda query: db.cursor().execute(query).fetchall())

    return side("kept"), side("lost")


def differing_keys(sides: tuple[Side, Side], spans: tuple[Span, ...]) -> list[Key]:
    return sorted(narrow(sides[0], lambda: sides[1], spans).keys, key=str)


@pytest.mark.parametrize("bounds", [[], ["4"], ["1", "2", "500", "999"]])
def test_each_planted_difference_is_found_and_nothing_else(sides: tuple[Side, Side], bounds: list[str]) -> None:
    spans = spans_of(bounds)
    assert differing_keys(sides, spans) == [] and narrow(sides[0], lambda: sides[1], spans).rows == 1000
    for statement in PLANTED:
        sides[1].fetch(statement)
    keys = differing_keys(sides, spans)
    there, here = sides[0].values(keys), sides[1].values(keys)
    rows = {row.key: row for row in (different_row(COLUMNS, k, there.get(k, []), here.get(k, [])) for k in keys)}
    assert len(rows) == len(PLANTED) == len(keys)
    for key, only, column in PLANTED.values():
        shown = [(each.name, each.database, each.lake) for each in rows[key].columns]
        assert (rows[key].only, shown) == (only, [column] if column else [])


def test_a_row_that_the_lake_has_twice_differs(sides: tuple[Side, Side]) -> None:
    sides[1].fetch("insert into lost select * from lost where id = 3; delete from lost where id = 4")
    assert differing_keys(sides, (Span(),)) == [("3",), ("4",)]
    there, here = (side.values([("3",)])[("3",)] for side in sides)
    assert different_row(COLUMNS, ("3",), there, here).copies == 2


def test_values_that_meet_in_one_text_do_not_hide_each_other() -> None:
    db = duckdb.connect()
    texts = tuple(CanonicalColumn(name, Kind.TEXT, "string") for name in ("k", "a", "b"))
    rows = ("select '1' as k, 'x,1:y' as a, 'z' as b", "select '1' as k, 'x' as a, 'y,1:z' as b")
    sides = [Side(LAKE, f"({row}) as r", texts, (0,), lambda query: db.execute(query).fetchall()) for row in rows]
    assert sides[0].sum(Span()) != sides[1].sum(Span())


def test_where_too_much_differs_the_rest_is_counted(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "MOST_KEYS", 100)
    sides[1].fetch("delete from lost where id >= 100")
    result = narrow(sides[0], lambda: sides[1], spans_of(["99", "499"]))
    assert len(result.keys) == 400 and result.rows + result.left == 1000 and result.left == 500


def test_columns_without_a_common_text_are_named_and_a_table_without_a_key_is_refused() -> None:
    stored = (*STORED[:2], Column("doc", "string"), Column("old", "int"), Column("retyped", "string"))
    declared = (*DECLARED[:2], ("doc", "json"), ("new", "int(11)"), ("retyped", "int(11)"))
    uncompared = compared_columns("mysql", table("item"), declared, stored).uncompared
    assert [each.name for each in uncompared] == ["doc", "new", "retyped", "old"] and "json there" in str(uncompared[0])
    assert [each.by_nature for each in uncompared] == [True, False, False, True]
    item = table("item")
    assert item.ingest is not None
    with pytest.raises(UsageError, match="no primary key"):
        compared_columns("mysql", replace(item, ingest=replace(item.ingest, primary_key=())), declared, stored)
    with pytest.raises(UsageError, match=r"key column id of .* cannot be compared: not in the lake"):
        compared_columns("mysql", table("item"), declared, stored[1:])


def test_every_kind_has_its_sql_in_every_dialect() -> None:
    for dialect in (*DATABASES.values(), LAKE):
        for kind in Kind:
            assert "x" in dialect.text(CanonicalColumn("x", kind, "decimal(10,2)"))


def test_changes_of_the_log_that_a_table_has_not_read(tmp_path: Path) -> None:
    spool, key = Spool(tmp_path), (CanonicalColumn("id", Kind.WHOLE, "int"),)
    spool.prepare()

    def write(number: int, *changes: tuple[str, object, object]) -> None:
        lines = (
            json.dumps({"payload": {"before": before, "after": after, "source": {"schema": None, "table": name}}})
            for name, before, after in changes
        )
        text = "".join(f"{line}\t{{}}\n" for line in lines)
        (tmp_path / "log" / f"{number:012d}.gz").write_bytes(gzip.compress(text.encode()))

    write(1, ("item", None, {"id": 1}))
    write(2, ("item", {"id": 2}, {"id": 3}), ("other", None, {"id": 4}))
    unread = unread_rows(spool, frozenset({1}), Table(None, "item"), key)
    assert [(str(number),) in unread for number in (1, 2, 3, 4)] == [False, True, True, False]
    write(3, ("item", None, None))  # a truncate
    assert ("9",) in unread_rows(spool, frozenset({1}), Table(None, "item"), key)


@pytest.mark.parametrize(
    ("origin", "kind", "count", "ingest", "why"),
    [
        (Table(None, "item", ("id",)), "int(11)", 9_000, {}, None),
        (Table(None, "item"), "int(11)", 500, {}, None),
        (Table(None, "item", ("other",)), "int(11)", 501, {}, "has no primary key that begins with id"),
        (Table("old", "odd name", ("id",)), "int(11)", 1, {}, "has signs"),
        (Table(None, "item", ("id",)), "timestamp(6)", 1, {}, "column id of type timestamp"),
        (Table(None, "item", ("id",)), "datetime(6)", 1, {}, None),
        (Table(None, "item", ("id",)), "int(11)", 1, {"deletes": "soft"}, "keeps deleted rows"),
        (Table(None, "item", ("id",)), "int(11)", 1, {"order_by": ("doc",)}, "`order_by` column doc"),
    ],
)
def test_what_cannot_be_read_again_by_key_is_said(
    origin: Table, kind: str, count: int, ingest: dict[str, Any], why: str | None
) -> None:
    item = table("item")
    assert item.ingest is not None
    item = replace(item, ingest=replace(item.ingest, **ingest))
    stored = (Column("id", "int" if kind.startswith("int") else "timestamp"), Column("doc", "string"))
    columns = compared_columns("mysql", item, (("id", kind), ("doc", "json")), stored)
    part = ComparedPart(origin, cast(LakeRows, None), columns, cast(Side, None), frozenset())
    keys = tuple((str(number),) for number in range(count))
    error = why_not_repaired(TableComparison(item, 0.1, keys=(DifferentKeys(part, keys),)))
    assert error is None if why is None else (error is not None and why in str(error))


def test_a_row_that_is_deleted_by_a_repair_states_the_types_that_the_lake_has() -> None:
    """Without them an integer would be taken for a `bigint`, and the column be widened."""
    others = (CanonicalColumn("day", Kind.DATE, "date"), CanonicalColumn("ok", Kind.WHOLE, "boolean"))
    columns = [each for each in (*COLUMNS.lake, *others) if each.kind is not Kind.FLOAT]
    event = json.loads(delete_event(Table(None, "item"), "shop", {each.name: (each, None) for each in columns}))
    stated = {field.name: field.type for field in schema_fields(json.dumps(event["schema"]["fields"]))}
    assert stated == {each.name: each.lake for each in columns}


def test_a_file_that_vanishes_is_an_error_of_its_table() -> None:
    with pytest.raises(NodeError, match=r"ods.item cannot be read: .*gone.parquet"), failing_reads("ods.item"):
        duckdb.connect().execute("select * from 'gone.parquet'")


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Asia/Shanghai", "Australia/Lord_Howe", "Africa/Casablanca"]
)
def test_local_times_of_a_database_are_the_moments_that_the_ingestion_makes_of_them(zone: str) -> None:
    """Also those that the clock repeats or skips, and those of years in which zones only have rules."""
    dice = random.Random(20240501)
    near = [at + timedelta(minutes=m) for at in _CLOCK_CHANGES for m in range(-150, 160, 15)]
    far = [datetime(1, 1, 2) + timedelta(seconds=dice.randrange(9998 * 31556952)) for _ in range(300)]
    edges = [datetime(9999, 12, 30, 23, 59, 59), datetime(2500, 1, 1), datetime(2499, 12, 31, 23), datetime(2100, 1, 1)]
    times = [*near, *far, *edges]
    rows = ", ".join(f"({(at - datetime(1970, 1, 1)) // timedelta(microseconds=1)})" for at in times)
    query = f"select {moment_of_local('m', zone, '//')} from (values {rows}) t(m)"
    wanted = [
        (at.replace(tzinfo=ZoneInfo(zone)) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        for at in times
    ]
    assert [row[0] for row in duckdb.connect().execute(query).fetchall()] == wanted


_CLOCK_CHANGES = [
    datetime(2024, 3, 31, 2), datetime(2024, 10, 27, 3), datetime(2024, 3, 10, 2), datetime(2024, 11, 3, 2),
    datetime(2024, 10, 6, 2), datetime(2024, 4, 7, 2), datetime(1945, 5, 24, 2), datetime(2300, 3, 28, 2),
    datetime(7777, 10, 31, 3),
]  # fmt: skip
