"""Mergeable aggregates over rows that are recomputed: equal to a recompute after each batch (on DuckDB)."""

from __future__ import annotations

import pytest

from tests.levels import sample
from tests.properties.lake import T, U, check, compiled, schema

COLUMNS = schema(a="int", b="int", s="string", f="double")
PATH = [
    {T: {"1": (1, 1, "x", 0.5), "2": (1, None, None, None), "3": (None, 2, "y", 2.0)}, U: {"1": (1, 5, "x", 1.0)}},
    {T: {"1": (1, 1, "x", 0.5), "2": (2, None, None, 1.0), "3": (None, 2, "y", 2.0)}, U: {"1": (1, 6, "x", 1.0)}},
    {T: {"1": (1, 9, "x", 0.5), "2": (2, 4, None, 1.0)}, U: {"1": (2, 6, "x", 1.0), "2": (1, 1, "y", None)}},
    {T: {"1": (1, 9, "x", 0.5), "2": (2, 4, None, 1.0), "4": (2, 7, "x", None)}, U: {}},
    {T: {}, U: {"9": (2, 2, "z", 1.0)}},
    {T: {"5": (2, 2, "z", 0.25)}, U: {"9": (2, 2, "z", 1.0), "8": (2, None, None, None)}},
]
MERGED = {
    "left join": "select u.s, count(*) as n, sum(t.b) as x, max(t.b) as hi, min(u.b) as lo from ods.t"
                 " left join ods.u on t.a = u.a group by u.s",
    "full join": "select t.s, u.s as r, count(t.a) as n, sum(u.b) as x from ods.t full join ods.u on t.a = u.a"
                 " group by t.s, u.s",
    "exists": "select s, count(*) as n, avg(b) as x from ods.t where exists (select 1 from ods.u where u.a = t.a)"
              " group by s",
    "not exists": "select s, max(b) as hi from ods.t where not exists (select 1 from ods.u where u.a = t.a) group by s",
    "no GROUP BY": "select sum(b) / 7.0 as x, count(*) as n from ods.t"
                   " where b < (select avg(b) from ods.u where u.a = t.a)",
    "over groups": "select n, count(*) as m from (select a, count(*) as n from ods.t group by a) as q group by n",
    "over distinct rows": "select a, count(*) as n, min(s) as lo from (select distinct a, s from ods.t) as q"
                          " group by a",
    "over a union": "select a, count(*) as n from (select a from ods.t union select a from ods.u) as q group by a",
    "over a window": "select a, count(n) as m from (select a, row_number() over (partition by s order by b, a) as n"
                     " from ods.t) as q group by a",
    "over groups that cannot be merged": "select n, count(*) as m from (select a, count(distinct s) as n from ods.t"
                                         " group by a) as q group by n",
}  # fmt: skip
NOT_MERGED = {
    "select u.s, count(distinct t.b) as n from ods.t left join ods.u on t.a = u.a group by u.s": "group_recompute",
    "select u.s, sum(t.f) as n from ods.t left join ods.u on t.a = u.a group by u.s": "group_recompute",
    "select n, count(*) as m from (select a, sum(f) as n from ods.t group by a) as q group by n": "full_refresh",
    "select u.s, count(*) as n from ods.t left join ods.u on t.a = u.a group by u.s having count(*) > 1":
        "group_recompute",
}  # fmt: skip


@sample("name", MERGED, every=3)
def test_groups_follow_what_changes_below_them(name: str) -> None:
    plan = compiled(MERGED[name], COLUMNS)
    assert plan.classification.strategy == "aggregate_merge", plan.classification.reasons
    assert "MRG001" in {reason.rule for reason in plan.classification.reasons}
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


@pytest.mark.parametrize("sql", NOT_MERGED)
def test_what_cannot_be_merged_keeps_its_strategy(sql: str) -> None:
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy == NOT_MERGED[sql], plan.classification.reasons


def test_a_partitioned_table_is_rescanned_by_partition() -> None:
    sql = "select u.a, count(*) as n from ods.u left join ods.t on t.a = u.a group by u.a"
    assert compiled(sql, COLUMNS).classification.strategy == "aggregate_merge"
    assert compiled(sql, COLUMNS, ["a"]).classification.strategy != "aggregate_merge"
