"""Netting signed rows, and the check of a declared key, on DuckDB. Both forms of netting have the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from sqlmesh_like.delta import actions
from sqlmesh_like.delta.actions import ACTIONS, require_unique
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import IS_DELETED, KEY, WEIGHT

NAMES = (KEY, "part", "x", "tags")
AT = (KEY, "part")
NAN = float("nan")
Signed = tuple[str, str | None, float | None, list[int] | None, int]


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE signed ({KEY} VARCHAR, part VARCHAR, x DOUBLE, tags INT[], {WEIGHT} BIGINT)")
        yield connection


def insert(db: duckdb.DuckDBPyConnection, *rows: Signed) -> None:
    db.execute("DELETE FROM signed")
    for row in rows:
        db.execute("INSERT INTO signed VALUES (?, ?, ?, ?, ?)", row)


def rows(db: duckdb.DuckDBPyConnection, query: exp.Query) -> list[Any]:
    return db.execute(query.sql("duckdb")).fetchall()


def netted(db: duckdb.DuckDBPyConnection, form: str) -> list[str]:
    query = {"join": actions.actions_by_join, "group": actions.actions_by_group}[form]("signed", NAMES, AT)
    shown = f"SELECT {', '.join(NAMES)}, {IS_DELETED} FROM ({query.sql('duckdb')})"
    return sorted(map(repr, db.execute(shown).fetchall()))


@pytest.mark.parametrize("form", ["join", "group"])
def test_unchanged_rows_are_no_action_and_a_move_is_two(db: duckdb.DuckDBPyConnection, form: str) -> None:
    insert(
        db,
        ("same", "p", NAN, [1], -1), ("same", "p", NAN, [1], 1),
        ("null", None, None, None, -1), ("null", None, None, None, 1),
        ("new", None, 1.0, [], 1), ("gone", "p", 2.0, None, -1),
        ("changed", "p", 1.0, [1], -1), ("changed", "p", 1.0, [1, 2], 1),
        ("moved", "p", 1.0, None, -1), ("moved", None, 1.0, None, 1),
    )  # fmt: skip
    assert netted(db, form) == sorted(
        map(
            repr,
            [
                ("new", None, 1.0, [], False), ("gone", "p", 2.0, None, True), ("changed", "p", 1.0, [1, 2], False),
                ("moved", "p", 1.0, None, True), ("moved", None, 1.0, None, False),
            ],
        )
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_both_forms_have_the_same_rows(db: duckdb.DuckDBPyConnection, seed: int) -> None:
    draw = random.Random(seed)

    def row(key: int, part: str | None, sign: int) -> Signed:
        return (str(key), part, draw.choice([None, NAN, 0.0, 1.5]), draw.choice([None, [], [1]]), sign)

    places = [(key, part) for key in range(12) for part in (None, "", "p")]
    signed = [row(*place, sign) for place in places for sign in (-1, 1) if draw.random() < 0.6]
    insert(db, *signed)
    assert netted(db, "join") == netted(db, "group") != []


def test_keys_that_enter_or_leave_repeatedly_are_counted(db: duckdb.DuckDBPyConnection) -> None:
    insert(
        db, ("a", None, 1.0, None, 1), ("a", None, 2.0, None, 1), ("b", None, None, None, -3), ("b", "p", 1.0, None, 1)
    )
    assert rows(db, actions.copies_of_keys("signed", AT)) == [(2, 3)]
    insert(db)
    assert rows(db, actions.copies_of_keys("signed", AT)) == [(None, None)]


def test_actions_are_counted(db: duckdb.DuckDBPyConnection) -> None:
    insert(db, ("a", None, 1.0, None, 1), ("b", None, 1.0, None, -1), ("c", None, 1.0, None, -1))
    db.execute(f"CREATE TABLE {ACTIONS} AS {actions.actions_by_group('signed', NAMES, AT).sql('duckdb')}")
    assert rows(db, actions.action_counts(has_copies=True)) == [(1, 2, 1)]
    assert rows(db, actions.action_counts(has_copies=False)) == [(1, 2, None)]


@pytest.mark.parametrize(
    ("entering", "staying", "copies", "nulls"),
    [
        ([(1, "a")], [(2, "a"), (3, "b"), (3, "b")], 1, 0),  # what stays is not judged
        ([(1, "a"), (1, "a")], [], 2, 0),
        ([(1, "a")], [(1, "a"), (1, "b")], 2, 0),
        ([(None, "a")], [(2, "a")], 1, 1),
        ([(1, None), (None, None)], [], 1, 2),
        ([], [(1, "a")], None, 0),
    ],
)
def test_a_declared_key_of_entering_rows_is_compared_with_all_that_stay(
    db: duckdb.DuckDBPyConnection, entering: list[Any], staying: list[Any], copies: int | None, nulls: int
) -> None:
    for table, given in (("entering", entering), ("staying", staying)):
        db.execute(f"CREATE TABLE {table} (id INT, city VARCHAR)")
        if given:
            db.executemany(f"INSERT INTO {table} VALUES (?, ?)", given)
    selects = [exp.select("id", "city").from_(table) for table in ("entering", "staying")]
    assert rows(db, actions.key_conflicts(*selects, ("id", "city"))) == [(copies, nulls)]


def test_a_key_that_is_null_or_repeats_is_named() -> None:
    require_unique("dws_m", ("id",), copies=1)
    with pytest.raises(NodeError, match=r"3 rows of dws_m have NULL in unique_key \(id\)"):
        require_unique("dws_m", ("id",), copies=5, nulls=3)
    with pytest.raises(NodeError, match=r"unique_key \(_sml_key\) of dws_m repeats: up to 2 rows share one"):
        require_unique("dws_m", (), copies=2)
