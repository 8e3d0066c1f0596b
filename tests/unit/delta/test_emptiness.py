"""What a program leaves out where it is known that a relation has no rows."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from sqlmesh_like.delta.emptiness import without_empty
from sqlmesh_like.delta.program import name_of

LEFT = "select l.a, l.w from changes.l as l join current.r as r on l.a = r.a"
RIGHT = "select l.a, r.w from current.l as l join changes.r as r on l.a = r.a"
BOTH = f"select a, w from ({LEFT} union all {RIGHT}) as b"


def left(sql: str, *empty: str) -> str | None:
    query = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(query, exp.Query)
    simplified = without_empty(query, lambda table: name_of(table) in empty)
    return simplified.sql("spark").lower() if simplified is not None else None


def kept(sql: str) -> str:
    return sqlglot.parse_one(sql, dialect="spark").sql("spark").lower()


@pytest.mark.parametrize(
    ("empty", "expected"),
    [
        ((), BOTH),
        (("changes.r",), f"select a, w from ({LEFT}) as b"),
        (("changes.l",), f"select a, w from ({RIGHT}) as b"),
        (("changes.other",), BOTH),
    ],
)
def test_a_join_is_read_from_the_side_that_has_rows(empty: tuple[str, ...], expected: str) -> None:
    assert left(BOTH, *empty) == kept(expected)


def test_nothing_is_left_where_both_sides_are_empty() -> None:
    assert left(BOTH, "changes.l", "changes.r") is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select a from x where exists (select 1 from r)", None),
        ("select a from x where not exists (select 1 from r)", "select a from x"),
        ("select a from x where a = 1 or exists (select 1 from r)", "select a from x where a = 1"),
        ("select a from x where a = 1 and not exists (select 1 from r where r.a = x.a)", "select a from x where a = 1"),
        ("select a from x where not (a = 1 and exists (select 1 from r))", "select a from x"),
        ("select a from x where a in (select a from r)", None),
        ("select a from x where false", None),
        ("select a from r group by a", None),
        ("select a from x union select a from r", "select distinct * from (select a from x) as _sml_u"),
        ("select a from r union all select b from x", "select `b` as `a` from (select b from x) as _sml_u"),
        ("select a from x where f(a) <> f(a) and b", None),
    ],
)
def test_conditions_over_empty_relations_are_decided(sql: str, expected: str | None) -> None:
    assert left(sql, "r") == (None if expected is None else kept(expected))


@pytest.mark.parametrize(
    "sql",
    [
        "select a from (select a from current.l union all select a from x) as b",
        "select a from (select count(*) as a from r union all select a from x) as b",  # one row of none
        "select l.a from x as l left join r on l.a = r.a",
        "select l.a from r right join x as l on l.a = r.a",
        "select a from x where not (a <> a)",  # NULL, and so nothing, where a is NULL
        "select a from x where a > (select count(*) from r)",
    ],
)
def test_what_is_not_proven_empty_stays(sql: str) -> None:
    assert left(sql, "r") == kept(sql)
