"""GROUPING SETS, ROLLUP and CUBE: equal to a recompute after each batch, and what is not derived says so (on DuckDB).

Expected rows that DuckDB cannot vouch for were taken from Spark 3.5.9: duplicate sets, and no row for no rows.
"""

from __future__ import annotations

import pytest

from sqlmesh_like.analyze.algebra.lineage import split_columns
from sqlmesh_like.analyze.algebra.relation import used_columns
from sqlmesh_like.errors import SqlError
from tests.levels import sample
from tests.properties.lake import T, check, compiled, final_rows, schema, states

COLUMNS = schema(a="int", b="int", c="int", s="string", f="double")
PATH = states(
    {"1": (1, 1, 10, "x", None), "2": (1, 2, 20, "y", None), "3": (2, None, 30, None, None), "4": (None, 1, 5, "x", 1)},
    {"5": (1, 1, 7, None, None), "4": None},
    {"1": (None, None, 3, "x", None), "2": None},
    {"1": None, "2": None, "3": None, "5": None},
    {"1": (1, 1, 10, "x", None)},
)

MERGED = {
    "rollup": "select a, b, sum(c) as x, count(*) as n from ods.t group by rollup(a, b)",
    "with rollup": "select a, b, sum(c) as x from ods.t group by a, b with rollup",
    "with cube": "select a, b, avg(c) as x from ods.t group by a, b with cube",
    "a key beside a rollup": "select a, b, min(c) as x, grouping(b) as g from ods.t group by a, rollup(b)",
    "a key that is aggregated": "select a, sum(a) as x, min(a) as m, count(a) as n from ods.t group by rollup(a)",
    "a key in FILTER": "select a, sum(c) filter (where a = 1) as x from ods.t group by rollup(a)",
    "equal sets": "select a, count(*) as n from ods.t group by grouping sets ((a), (a), (), ())",
    "bare keys as sets": "select a, b, count(*) as n from ods.t group by grouping sets ((a, b), a, ())",
    "sets after keys": "select a, b, count(*) as n from ods.t group by a, b grouping sets ((a, b), a)",
    "two forms side by side": "select a, b, s, count(*) as n from ods.t group by cube ((a, b), s), rollup (a)",
    "forms in sets": "select a, b, count(*) as n from ods.t group by grouping sets (rollup(a, b), cube(a), (s))",
    "expressions over keys": "select coalesce(a, 0) + 1 as k, case when grouping(a) = 1 then 'all' else 'one' end as w,"
                             " count(*) as n from ods.t group by rollup(a)",
    "expressions as keys": "select b + 1 as x, b + 1 + a as y, sum(c) as z from ods.t group by rollup(b + 1, a)",
    "conditions as keys": "select b is null as x, s in ('x', 'y') and a > 0 as y, sum(c) as z from ods.t"
                          " group by cube(b is null, s in ('x', 'y') and a > 0)",
    "conditions as sets": "select a > 1 as x, s like 'x%' as y, count(*) as n from ods.t"
                          " group by grouping sets (a > 1, rollup(b is null, s like 'x%'), ())",
    "positions": "select a as x, upper(s) as y, sum(c) as z from ods.t group by rollup(1, 2)",
    "an alias": "select upper(s) as y, max(c) as z from ods.t group by cube(y)",
    "a join below": "select x.a, sum(y.c) as n from ods.t as x join ods.t as y on x.a = y.b group by rollup(x.a, y.b)",
    "sets over sets": "select a, n, count(*) as m from (select a, b, count(*) as n from ods.t group by rollup(a, b))"
                      " as q group by cube(a, n)",
}  # fmt: skip
RECOMPUTED = {
    "a distinct count of a key": "select a, count(distinct a) as n from ods.t group by rollup(a)",
    "having": "select a, sum(c) as x from ods.t group by rollup(a) having a is null and count(*) > 0",
    "having of a set": "select a, sum(c) as x from ods.t group by rollup(a) having grouping(a) = 1",
    "distinct rows": "select distinct b, count(*) as n from ods.t group by rollup(a, b)",
}  # fmt: skip


@sample("name", MERGED, every=4)
def test_grouping_sets_are_merged(name: str) -> None:
    plan = compiled(MERGED[name], COLUMNS)
    assert plan.classification.strategy == "aggregate_merge", plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


@pytest.mark.parametrize("name", RECOMPUTED)
def test_what_cannot_be_merged_is_recomputed_by_group_and_set(name: str) -> None:
    plan = compiled(RECOMPUTED[name], COLUMNS)
    assert plan.classification.strategy == "group_recompute", plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


def test_equal_sets_give_equal_rows_and_the_numbers_are_those_of_spark() -> None:
    sql = "select a, b, grouping_id() as g, grouping_id(b, a) as h, grouping__id as i, count(*) as n from ods.t"
    rows = final_rows(compiled(f"{sql} group by b, a grouping sets ((a), (b), (b))", COLUMNS), COLUMNS, PATH[:1])
    both = [(None, 1, 1, 1, 1, 2), (None, 2, 1, 1, 1, 1), (None, None, 1, 1, 1, 1)]
    expected = [(1, None, 2, 2, 2, 2), (2, None, 2, 2, 2, 1), (None, None, 2, 2, 2, 1), *both, *both]
    assert rows == sorted(expected, key=repr)


def test_a_key_that_no_set_names_is_null() -> None:
    sets = "grouping sets ((a), ())"
    named = compiled(f"select a, b, count(*) as n from ods.t group by a, b {sets}", COLUMNS)
    same = compiled(f"select a, cast(null as int) as b, count(*) as n from ods.t group by {sets}", COLUMNS)
    assert final_rows(named, COLUMNS, PATH[:3]) == final_rows(same, COLUMNS, PATH[:3]) != []


def test_the_empty_set_over_no_rows_is_no_row() -> None:
    plan = compiled("select count(*) as n, sum(c) as x from ods.t group by grouping sets (())", COLUMNS)
    assert final_rows(plan, COLUMNS, PATH[:4]) == []
    assert final_rows(plan, COLUMNS, PATH) == [(1, 10)]


def test_a_key_of_every_set_splits_into_partitions_and_one_of_some_sets_does_not() -> None:
    sql = "select a, b, count(distinct c) as n from ods.t group by a, rollup(b)"
    plan = compiled(sql, COLUMNS, ["a"])
    assert plan.classification.strategy == "partition_rescan"
    assert check(plan, COLUMNS, PATH)
    assert plan.facts.relation is not None
    assert split_columns(plan.facts.relation) == {"a": {T: "a"}}
    assert used_columns(plan.facts.relation) == {T: ("a", "b", "c")}
    other = compiled(sql, COLUMNS, ["b"])
    assert [reason.rule for reason in other.classification.reasons] == ["AGG002", "PAR002", "GRP001"]
    assert check(other, COLUMNS, PATH)


REFUSED = {
    "select count(*) as n from ods.t group by rollup(1 + 1, a)": ("QRY010", 33),
    "select a, a + 1 as x, count(*) as n from ods.t group by rollup(a, a + 1)": ("QRY010", 67),
    "select a, grouping(b) as g from ods.t group by rollup(a)": ("QRY010", 11),
    "select a, b, grouping_id(b, a) as g from ods.t group by rollup(a, b)": ("QRY010", 14),
    "select a, count(*) as n from ods.t group by a grouping sets ((a), (b))": ("QRY010", 45),
    "select a, count(*) as n from ods.t group by a, rollup(b) with cube": ("QRY010", 45),
    "select f, count(*) as n from ods.t group by rollup(f)": ("KEY002", 52),
    "select a, count(*) as n from ods.t group by cube(a, b, c, s, a % 2, b % 2, c % 2, upper(s))": ("QRY010", 45),
    "select a, sum(grouping(a)) as n from ods.t group by rollup(a)": ("FUN001", 15),
    "select count(*) as n from ods.t group by rollup(a, b), cube(a, b, c), cube(s, b)": ("QRY010", 33),
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_form_that_is_not_derived_is_a_full_refresh_that_says_which_and_where(sql: str) -> None:
    classification = compiled(sql, COLUMNS).classification
    (first,) = classification.reasons
    assert (classification.strategy, first.rule, first.column) == ("full_refresh", *REFUSED[sql])


def test_a_column_that_is_no_key_is_a_mistake() -> None:
    with pytest.raises(SqlError, match=r"1:14: column 'c' is neither in GROUP BY"):
        compiled("select a, b, c from ods.t group by rollup(a, b)", COLUMNS)
