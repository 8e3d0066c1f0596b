"""Aliases of a SELECT list within its window functions: what Spark refuses there is written out, and means the same."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from sqlmesh_like.analyze.window_aliases import with_window_aliases

ROWS = "create schema ods; create table ods.t as select * from (values (1, 1), (2, 1), (5, 2), (5, 2)) as v(a, g)"
MEANT = {
    "select a + 1 as b, sum(b) over (partition by g) as s from ods.t":
        "select a + 1 as b, sum(a + 1) over (partition by g) as s from ods.t",
    "select a + 1 as b, b * 2 as c, sum(c - b) over (partition by g order by B) as s from ods.t":
        "select a + 1 as b, (a + 1) * 2 as c, sum((a + 1) * 2 - (a + 1)) over (partition by g order by a + 1) as s "
        "from ods.t",
    "select a * 10 as g, sum(a) over (partition by g) as s from ods.t":  # a column goes before an alias
        "select a * 10 as g, sum(a) over (partition by t.g) as s from ods.t",
    "select g, sum(a) as b, sum(b) over (partition by 1) as s from ods.t group by g":
        "select g, sum(a) as b, sum(sum(a)) over (partition by 1) as s from ods.t group by g",
    "with c as (select a as x, g from ods.t) select x + g as y, max(y) over (partition by c.g) - y as s from c":
        "with c as (select a as x, g from ods.t) select x + g as y, max(x + g) over (partition by c.g) - (x + g) as s "
        "from c",
}  # fmt: skip
LEFT = [
    "select rand() as b, sum(b) over (partition by g) as s from ods.t",
    "select f(a) as b, sum(b) over (partition by g) as s from ods.t",
    "select a as b, a + 1 as b, sum(b) over (partition by g) as s from ods.t",
    "select sum(a) over (order by g) as b, sum(b) over (partition by g) as s from ods.t",
    "select a + 1 as b, sum(b) over (partition by g) as s from ods.unknown",
]


def names(schema: str, table: str) -> tuple[str, ...] | None:
    return ("a", "g") if (schema, table) == ("ods", "t") else None


@pytest.mark.parametrize("query", MEANT)
def test_it_means_the_same_without_the_alias(query: str) -> None:
    made = with_window_aliases(sqlglot.parse_one(query, dialect="spark"), names)
    for window in made.find_all(sqlglot.exp.Window):
        assert {column.name for column in window.find_all(sqlglot.exp.Column)} <= {"a", "g", "x"}
    with duckdb.connect() as db:
        db.execute(ROWS)
        given = db.execute(made.sql("duckdb")).fetchall()
        assert sorted(given) == sorted(db.execute(MEANT[query]).fetchall())


@pytest.mark.parametrize("query", LEFT)
def test_what_may_differ_when_it_is_written_twice_is_left(query: str) -> None:
    tree = sqlglot.parse_one(query, dialect="spark")
    assert with_window_aliases(tree.copy(), names) == tree
