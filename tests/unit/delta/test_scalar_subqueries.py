"""Scalar subqueries: equal to a recompute after each batch, rows without a partner included (on DuckDB)."""

from __future__ import annotations

from sqlmesh_like.analyze.algebra.lineage import split_columns
from sqlmesh_like.analyze.algebra.relation import used_columns
from tests.levels import sample
from tests.properties.lake import T, U, check, compiled, schema

COLUMNS = schema(a="int", b="int", s="string")
PATH = [
    {T: {"1": (1, 1, "x"), "2": (1, None, None), "3": (None, 2, "y"), "4": (3, 0, "")}, U: {"1": (1, 5, "x")}},
    {T: {"1": (1, 1, "x"), "2": (2, None, None), "3": (None, 2, "y")}, U: {"1": (1, 6, "x"), "2": (1, 1, "y")}},
    {T: {"1": (1, 1, "x"), "2": (2, None, "x"), "3": (None, 2, "y")}, U: {"2": (2, 1, "y"), "3": (None, 4, None)}},
    {T: {"1": (1, 1, "x"), "2": (2, None, "x"), "3": (None, 2, "y")}, U: {}},
    {T: {"5": (2, 2, "z")}, U: {"9": (2, 2, "z"), "8": (2, None, None)}},
]
COUNTED = {
    "count of no rows is 0": "select a, (select count(*) from ods.u where u.a = t.a) as m from ods.t",
    "count of no rows in an expression":
        "select a, (select count(b) * 2 + 1 from ods.u where u.a = t.a) + t.b as m from ods.t",
    "distinct count": "select a, (select count(distinct s) from ods.u where u.a = t.a) as m from ods.t",
    "sum of no rows is NULL": "select a, (select sum(b) from ods.u where u.a = t.a) as m from ods.t",
    "a value that replaces NULL": "select a, (select coalesce(max(b), -1) from ods.u where u.a = t.a) as m from ods.t",
    "NULL is equal to NULL": "select a, (select count(*) from ods.u where u.a <=> t.a) as m from ods.t",
    "two equalities": "select a, (select max(b) from ods.u where u.a = t.a and t.s = u.s) as m from ods.t",
    "an expression on each side": "select a, (select max(b) from ods.u where u.a + 1 = t.a * 2) as m from ods.t",
    "conditions of either side":
        "select a, (select count(*) from ods.u where u.a = t.a and u.b > 1 and t.b > 0) as m from ods.t",
    "the table itself": "select a, (select max(b) from ods.t as o where o.a = t.a) as m from ods.t",
    "a name that is found inside first": "select a, (select max(b) from ods.u where a = t.a) as m from ods.t",
    "in WHERE": "select a, b from ods.t where b < (select max(b) from ods.u where u.a = t.a)",
    "only rows without a partner": "select a from ods.t where (select count(*) from ods.u where u.a = t.a) = 0",
    "beside EXISTS": "select a from ods.t where exists (select 1 from ods.u where u.a = t.a) and"
                     " b <> (select min(b) from ods.u where u.a = t.a)",
    "in CASE": "select a, case when (select count(*) from ods.u where u.a = t.a) > 1 then 'many' end as m from ods.t",
    "several": "select a, (select max(b) from ods.u where u.a = t.a) as m, (select min(b) from ods.u) as n from ods.t",
    "beside a window": "select a, (select max(b) from ods.u where u.a = t.a) as m,"
                       " count(*) over (partition by a) as n from ods.t",
    "over a join": "select t.a, (select max(b) from ods.u as w where w.a = u.a and w.s = t.s) as m"
                   " from ods.t join ods.u on t.a = u.a",
    "of a join": "select a, (select max(x.b) from ods.u as x join ods.u as y on x.a = y.a where x.a = t.a) as m"
                 " from ods.t",
    "below an aggregate": "select a, sum(m) as n from (select a, (select max(b) from ods.u where u.a = t.a) as m"
                          " from ods.t) as q group by a",
    "without correlation": "select a, (select max(b) + 1 from ods.u) as m from ods.t",
}  # fmt: skip


@sample("name", COUNTED, every=4)
def test_a_scalar_subquery_follows_both_tables(name: str) -> None:
    plan = compiled(COUNTED[name], COLUMNS)
    wanted = "aggregate_merge" if name == "below an aggregate" else "group_recompute"
    assert plan.classification.strategy == wanted, plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


def test_a_correlated_column_splits_both_tables_into_partitions() -> None:
    plan = compiled("select a, (select max(b) from ods.u where u.a = t.a) as m from ods.t", COLUMNS, ["a"])
    assert plan.classification.strategy == "partition_rescan"
    assert check(plan, COLUMNS, PATH)
    assert plan.facts.relation is not None
    assert split_columns(plan.facts.relation) == {"a": {T: "a", U: "a"}}
    assert used_columns(plan.facts.relation) == {T: ("a",), U: ("a", "b")}
