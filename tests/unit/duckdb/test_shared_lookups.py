"""Rows looked up for several steps are those of the table, each once, whichever keys come when."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import duckdb
import pytest

from sqlmesh_like.delta.program import Prune
from sqlmesh_like.duckdb.programs import shared_lookups
from sqlmesh_like.duckdb.programs.shared_lookups import LookupTable, SharedLookups, shared_columns
from sqlmesh_like.names import Column
from sqlmesh_like.plan.cluster.lookup_columns import lookup_pairs

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


def follow(db: duckdb.DuckDBPyConnection, lookups: SharedLookups) -> None:
    """Steps of several models ask for rows of a table as it was at two frontiers, by keys of any columns."""
    dice = random.Random(3)
    db.execute("create or replace table t2 as select * replace (a + 1 as a) from t where c > 10")
    for _ in range(40):
        frontier, source = dice.choice((("f1", "t"), ("f2", "t2")))
        needed = dice.choice((("a", "b"), ("a", "b", "c")))
        table = LookupTable(("uri", frontier), f"SELECT * FROM {source}", frozenset(needed), ("a", "b", "_sml_key"))
        pairs = dice.choice(([("a", "p")], [("b", "q")], [("a", "p"), ("b", "q")]))
        name = step(db, *[(dice.choice((None, *range(9))), dice.choice((None, "x", "y"))) for _ in range(2)])
        rows = lookups.rows(db, table, pairs, name)
        assert (rows is None) == ("c" in needed), "columns that are not kept"
        if rows is None:
            continue
        on = " and ".join(f"t.{own} is not distinct from s.{theirs}" for own, theirs in pairs)
        assert matching(db, rows, on) == matching(db, source, on), "rows of a step"


class KeyedBy(dict[tuple[object, ...], object]):
    """Entries by a part of what tells them apart."""

    def __init__(self, part: Callable[[tuple[object, ...]], object]) -> None:
        super().__init__()
        self.part = part

    def setdefault(self, key: tuple[object, ...], default: object = None) -> object:  # type: ignore[override]
        return super().setdefault((self.part(key),), default)


def keyed_by(part: Callable[[tuple[object, ...]], object]) -> Callable[[pytest.MonkeyPatch, SharedLookups], None]:
    return lambda patch, lookups: patch.setattr(lookups, "_entries", KeyedBy(part))


def keys_are_not_kept(patch: pytest.MonkeyPatch, _: SharedLookups) -> None:
    """They are looked up again, and their rows are there twice."""
    read = shared_lookups._read_new_keys

    def naive(
        db: duckdb.DuckDBPyConnection, entry: shared_lookups._Entry, wanted: LookupTable, own: Sequence[str]
    ) -> None:
        read(db, entry, wanted, own)
        db.execute(f"DELETE FROM {entry.keys}")

    patch.setattr(shared_lookups, "_read_new_keys", naive)


def null_is_no_key(patch: pytest.MonkeyPatch, _: SharedLookups) -> None:
    read = shared_lookups._read_new_keys

    def naive(
        db: duckdb.DuckDBPyConnection, entry: shared_lookups._Entry, wanted: LookupTable, own: Sequence[str]
    ) -> None:
        some = " AND ".join(f"{name} IS NOT NULL" for name in own)
        read(db, entry, replace(wanted, select=f"{wanted.select} WHERE {some}"), own)

    patch.setattr(shared_lookups, "_read_new_keys", naive)


def columns_are_not_asked_for(patch: pytest.MonkeyPatch, lookups: SharedLookups) -> None:
    rows = lookups.rows

    def naive(
        db: duckdb.DuckDBPyConnection, wanted: LookupTable, pairs: Sequence[tuple[str, str]], name: str
    ) -> str | None:
        return rows(db, replace(wanted, needed=frozenset()), pairs, name)

    patch.setattr(lookups, "rows", naive)


NAIVE: dict[str, Callable[[pytest.MonkeyPatch, SharedLookups], None]] = {
    "rows of another frontier": keyed_by(lambda key: key[1]),
    "rows of keys of other columns": keyed_by(lambda key: key[0]),
    "keys are not kept": keys_are_not_kept,
    "NULL is no key": null_is_no_key,
    "columns that were not kept": columns_are_not_asked_for,
}


def test_models_that_ask_alike_get_the_same_rows(db: duckdb.DuckDBPyConnection) -> None:
    follow(db, SharedLookups())


@pytest.mark.parametrize("rule", NAIVE)
def test_a_naive_rule_is_caught(db: duckdb.DuckDBPyConnection, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lookups = SharedLookups()
    NAIVE[rule](monkeypatch, lookups)
    with pytest.raises(
        (AssertionError, duckdb.Error), match=r"columns that are not kept|rows of a step|Set operations|convert"
    ):
        follow(db, lookups)
