"""Rows looked up for several steps are those of the table, each once, whichever keys come when."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from sqlmesh_like.delta.program import Prune
from sqlmesh_like.duckdb import shared_lookups
from sqlmesh_like.duckdb.shared_lookups import LookupTable, SharedLookups, lookup_pairs, shared_columns
from sqlmesh_like.names import Column

SCHEMA = tuple(
    Column(name, type_) for name, type_ in {"a": "int", "b": "string", "c": "double", "_sml_key": "string"}.items()
)


@pytest.fixture
def db() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    dice = random.Random(1)
    rows = [(dice.choice((None, *range(9))), dice.choice((None, "x", "y")), n / 2, f"k{n}") for n in range(200)]
    db.execute("create table t(a int, b varchar, c double, _sml_key varchar)")
    db.executemany("insert into t values (?, ?, ?, ?)", rows)
    return db


def wanted(*needed: str) -> LookupTable:
    return LookupTable(("uri", "f1"), "SELECT * FROM t", frozenset(needed), ("a", "b", "_sml_key"))


def step(db: duckdb.DuckDBPyConnection, *keys: tuple[object, ...]) -> str:
    db.execute("create or replace temp table s(p int, q varchar)")
    db.executemany("insert into s values (?, ?)", keys)
    return "s"


def matching(db: duckdb.DuckDBPyConnection, table: str, on: str) -> Counter[tuple[object, ...]]:
    query = f"select a, b, _sml_key from {table} as t where exists (select 1 from s where {on})"
    return Counter(db.execute(query).fetchall())


def test_a_step_finds_what_the_table_has(db: duckdb.DuckDBPyConnection) -> None:
    dice, lookups = random.Random(2), SharedLookups()
    for _ in range(30):
        keys = [
            (dice.choice((None, *range(12))), dice.choice((None, "x", "y", "z"))) for _ in range(dice.randrange(1, 4))
        ]
        name = step(db, *keys)
        for pairs in ([("a", "p")], [("a", "p"), ("b", "q")]):
            rows = lookups.rows(db, wanted("a", "b"), pairs, name)
            assert rows is not None
            for equal in ("=", "is not distinct from"):
                on = " and ".join(f"t.{own} {equal} s.{theirs}" for own, theirs in pairs)
                assert matching(db, rows, on) == matching(db, "t", on)
            assert max(Counter(db.execute(f"select _sml_key from {rows}").fetchall()).values(), default=0) <= 1


def test_columns_that_were_not_kept_are_not_found_there(db: duckdb.DuckDBPyConnection) -> None:
    lookups = SharedLookups()
    assert lookups.rows(db, wanted("a", "c"), [("a", "p")], step(db, (1, None))) is None
    assert lookups.rows(db, wanted("a"), [("a", "p")], "s") is not None


def test_too_many_keys_or_rows_are_left_to_the_step(
    db: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_lookups, "MOST_KEYS", 2)
    monkeypatch.setattr(shared_lookups, "_MOST_ROWS", 30)
    lookups = SharedLookups()
    assert lookups.rows(db, wanted("a"), [("a", "p")], step(db, (1, None), (2, None), (3, None))) is None
    rows = [lookups.rows(db, wanted("a"), [("a", "p")], step(db, (number, None))) for number in range(4)]
    assert rows[0] is not None and rows[-1] is None


def test_a_look_up_that_failed_is_not_gone_on_with(db: duckdb.DuckDBPyConnection) -> None:
    lookups = SharedLookups()
    broken = LookupTable(("uri", "f1"), "SELECT * FROM missing", frozenset({"a"}), ("a", "_sml_key"))
    with pytest.raises(duckdb.Error):
        lookups.rows(db, broken, [("a", "p")], step(db, (1, None)))
    assert lookups.rows(db, wanted("a"), [("a", "p")], "s") is None


def test_pairs_are_of_the_same_plain_type() -> None:
    prunes = [Prune("keys", {"input": (("A", "p"),)}), Prune("more", {"input": (("b", "q"),)})]
    columns = {"keys": (Column("p", "bigint"),), "more": (Column("q", "string"),)}
    assert lookup_pairs(prunes, "input", SCHEMA, columns) == ([("b", "q")], "more")
    assert lookup_pairs(prunes[:1], "input", SCHEMA, columns) is None
    assert lookup_pairs(prunes, "other", SCHEMA, columns) is None
    assert (
        lookup_pairs([Prune("c", {"input": (("c", "p"),)})], "input", SCHEMA, {"c": (Column("p", "double"),)}) is None
    )


def test_the_row_key_is_always_kept() -> None:
    assert shared_columns(SCHEMA, {"b", "unknown"}) == ("b", "_sml_key")
