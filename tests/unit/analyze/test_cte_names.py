"""CTEs of one name in one query: Spark's text, which has all of them at the top, means what the query means."""

from __future__ import annotations

import duckdb
import pytest
import sqlglot

from sqlmesh_like.analyze.cte_names import distinct_ctes

QUERIES = [
    "select * from (with a as (select 1 as x) select x from a) as l, "
    "(with a as (select 2 as y) select a.y from a) as r",
    "with a as (select 1 as x), b as (with a as (select x + 1 as x from a) select x from a) "
    "select a.x, b.x as y from a, b",
    "with a as (select 1 as x) select x, (with a as (select 5 as x) select max(a.x) from a) as y from a",
    "(with a as (select 1 as x) select x from a) union all (with A as (select 2 as x) select A.x from A) order by x",
    "select l.x, r.x as y from (with a as (select 1 as x), a_2 as (select 3 as x) "
    "select a.x + a_2.x as x from a, a_2) as l cross join (with a as (select 7 as x) select t.x from a as t) as r",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_names_differ_and_the_rows_do_not(query: str) -> None:
    tree = sqlglot.parse_one(query, dialect="spark")
    made = distinct_ctes(tree.copy())
    names = [cte.alias.lower() for cte in made.find_all(sqlglot.exp.CTE)]
    assert len(set(names)) == len(names) and len(set(names)) > 1
    text = sqlglot.transpile(made.sql("spark"), read="spark", write="duckdb")[0]
    with duckdb.connect() as db:
        assert db.execute(text).fetchall() == db.execute(tree.sql("duckdb")).fetchall()
