"""Frames by RANGE with a distance: DuckDB's rows are those of Spark's rule, beside NULL, ties and gaps as well."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pytest
import sqlglot

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.duck_types import duck_type
from sqlmesh_like.duckdb.exact_sql import exact
from sqlmesh_like.names import Column

Rows = Sequence[tuple[int, str | None]]
CASES = 150


@dataclass(frozen=True)
class Kind:
    """Values of a type, and distances from them, each with the whole number that stands for it."""

    values: Mapping[str, int]
    distances: Mapping[str, int]


KINDS = {
    "int": Kind({str(n): n for n in (0, 1, 2, 4, 9, -3)}, {"0": 0, "1": 1, "3": 3}),
    "bigint": Kind({str(n): n for n in (0, 1, 2**40, 2**40 + 3)}, {"3": 3}),
    "decimal(4,1)": Kind({"999.9": 9999, "999.4": 9994, "0": 0, "-0.5": -5, "-999.9": -9999}, {"1": 10, "0.5": 5}),
    "date": Kind(
        {"2024-02-28": 0, "2024-02-29": 1, "2024-03-02": 3, "2025-02-28": 366},
        {"1": 1, "2": 2, "3": 3},
    ),
    "timestamp": Kind(
        {"2024-02-28 23:00:00": 0, "2024-02-28 23:59:00": 59, "2024-02-29 00:00:00": 60, "2024-03-01 00:00:00": 1500},
        {"interval 1 hour": 60, "interval '1' day": 1440, "interval 59 minutes": 59},
    ),
}  # fmt: skip
END = 2**62
SIDES = ("preceding", "row", "following")
"""DuckDB's parser refuses to go back, also by 0."""


@pytest.mark.parametrize("type_", KINDS)
def test_a_row_is_in_the_frame_if_its_value_is_between_the_bounds(type_: str) -> None:
    dice, kind = random.Random(5), KINDS[type_]
    bounds = {"current row": 0, "unbounded preceding": -END, "unbounded following": END}
    for text, size in kind.distances.items():
        bounds |= {f"{text} preceding": -size, f"{text} following": size}
    pairs = [(one, other) for one in bounds for other in bounds if bounds[one] <= bounds[other]]
    pairs = [pair for pair in pairs if SIDES.index(pair[0].split()[-1]) <= SIDES.index(pair[1].split()[-1])]
    pairs = [pair for pair in pairs if pair[0] != "unbounded following" and pair[1] != "unbounded preceding"]
    for _ in range(CASES):
        rows = [(n, dice.choice([None, *kind.values])) for n in range(dice.randrange(8))]
        is_descending, is_null_first = dice.random() < 0.5, dice.random() < 0.5
        low, high = dice.choice(pairs)
        order = f"v {'desc' if is_descending else 'asc'} nulls {'first' if is_null_first else 'last'}"
        sql = f"select k, count(*) over (order by {order} range between {low} and {high}) as n from t"
        sign = -1 if is_descending else 1
        places = {k: None if v is None else sign * kind.values[v] for k, v in rows}
        counts = {k: _count(places, k, bounds[low], bounds[high], -END if is_null_first else END) for k, _ in rows}
        assert _computed(sql, type_, rows) == counts, (sql, rows)


def _count(places: Mapping[int, int | None], of: int, low: int, high: int, null: int) -> int:
    """Spark's rule (`WindowExec`, `RangeBoundOrdering`): NULL plus a distance is NULL, which has its place in the
    order."""
    value = places[of]
    start, end = (by if abs(by) == END else null if value is None else value + by for by in (low, high))
    return sum(start <= (null if place is None else place) <= end for place in places.values())


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _computed(sql: str, type_: str, rows: Rows) -> dict[int, int]:
    query = sqlglot.parse_one(sql, dialect=SPARK)
    text = exact(query, lambda _: (Column("k", "int"), Column("v", type_))).sql  # type: ignore[arg-type]
    with _connection().cursor() as db:
        values = ", ".join(f"({k}, {'NULL' if v is None else repr(v)})" for k, v in [*rows, (0, None)])
        db.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT k, CAST(v AS {duck_type(type_)}) AS v FROM (VALUES {values}) r(k, v)"
        )
        db.execute("DELETE FROM t WHERE rowid = ?", [len(rows)])
        return dict(db.execute(text).fetchall())


@pytest.mark.parametrize(
    ("type_", "frame", "value"),
    [
        ("int", "2 preceding and current row", "-2147483648"),
        ("int", "current row and 1 following", "2147483647"),
        ("bigint", "1 preceding and 1 following", "9223372036854775807"),
        ("date", "current row and 5 following", "5881580-07-09"),
        ("timestamp", "current row and interval 99999 days following", "294246-12-31 00:00:00"),
    ],
)
def test_a_bound_beyond_the_range_of_its_type_is_left_to_spark(type_: str, frame: str, value: str) -> None:
    sql = f"select k, count(*) over (order by v range between {frame}) as n from t"
    assert _computed(sql, type_, [(1, None)]) == {1: 1}
    with pytest.raises(duckdb.Error, match=r"[Oo]verflow|out of range"):
        _computed(sql, type_, [(1, value)])
