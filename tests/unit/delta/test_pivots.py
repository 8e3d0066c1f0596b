"""PIVOT and UNPIVOT follow their inputs, with the rows that Spark 3.5.9 gave for these queries."""

from __future__ import annotations

import pytest

from tests.levels import sample
from tests.properties.lake import check, compiled, final_rows, schema, states

COLUMNS = schema(a="int", m="string", x="int", y="int", s="string", f="double")
START = {
    "1": (1, "jan", 10, 5, "p", 1.0), "2": (1, "feb", None, 6, "q", 2.0), "3": (2, None, 30, None, None, None),
    "4": (None, "jan", 5, 1, "x", 1.5), "5": (1, "mar", 3, 3, "z", 0.5), "6": (7, "feb", None, None, None, None),
}  # fmt: skip
PATH = states(
    START,
    {"7": (1, "jan", 7, None, None, None), "4": None, "6": (7, "jan", 1, 2, "x", None)},
    {"1": (None, None, 3, 2, "x", None), "2": None},
    {"1": None, "2": None, "3": None, "5": None, "6": None, "7": None},
    {"1": (1, "feb", 10, 4, "x", 0.1)},
)
LIKE_DUCKDB = {
    "select * from (select a, m, x from ods.t) pivot (sum(x) for m in ('jan', 'feb' as f))": "aggregate_merge",
    "select a, jan + 1 as j from (select a, m, x from ods.t) as q pivot (max(x) for m in ('jan'))": "group_recompute",
    "select * from (select m, x from ods.t) pivot (sum(x) for m in ('jan', 'feb'))": "aggregate_merge",
    "select * from (select a, m, s, x from ods.t) pivot (max(s) as s, count(x) as n for m in ('jan', 'feb'))":
        "aggregate_merge",
    "select * from (select a, m, f from ods.t) pivot (sum(f) for m in ('jan'))": "group_recompute",
    "select * from (select a, m, x, y from ods.t) unpivot (val for name in (x, y as yy))": "row_based",
    "select u.a, name, sum(val) as v from (select a, x, y from ods.t) unpivot include nulls (val for name in (x, y))"
    " as u group by a, name": "aggregate_merge",
}  # fmt: skip
OF_SPARK = {
    "select * from (select a, m, x from ods.t) pivot (count(x) for m in ('jan', 'feb' as f))": [
        (1, 1, 0), (2, None, None), (7, None, 0), (None, 1, None)],
    "select * from (select a, m, x from ods.t) pivot (sum(x) as s, count(*) as n for m in ('jan' as j, 'feb'))": [
        (1, 10, 1, None, 1), (2, None, None, None, None), (7, None, None, None, 1), (None, 5, 1, None, None)],
    "select * from (select m, a, x from ods.t) pivot (count(distinct x) for a in (1 as one, '2'))": [
        ("feb", 0, None), ("jan", 1, None), ("mar", 1, None), (None, None, 1)],
    "select * from (select a, m, x > 5 as b from ods.t) pivot (bool_or(b) for m in ('jan', 'feb'))": [
        (1, True, None), (2, None, None), (7, None, None), (None, False, None)],
    "select * from (select a, m, x from ods.t) pivot (count_if(x > 5) for m in ('jan', 'zzz'))": [
        (1, 1, None), (2, None, None), (7, None, None), (None, 0, None)],
    "select * from (select m, x from ods.t where x > 1000) pivot (count(x) as n, max(m) as l for m in ('jan'))": [
        (0, None)],
    "select * from (select a, x, y from ods.t) unpivot ((v, w) for name in ((x, y) as xy, (Y, x)))": [
        (1, "Y_x", 3, 3), (1, "Y_x", 5, 10), (1, "Y_x", 6, None), (1, "xy", 10, 5), (1, "xy", 3, 3),
        (1, "xy", None, 6), (2, "Y_x", None, 30), (2, "xy", 30, None), (None, "Y_x", 1, 5), (None, "xy", 5, 1)],
}  # fmt: skip
REBUILT = {
    "select * from (select a, m, x from ods.t) pivot (sum(x) for m in ('jan', 'jan'))": "QRY009",
    "select * from (select a, m, x from ods.t) pivot (sum(x) for a in ('1', '01'))": "QRY009",
    "select * from (select a, m, x from ods.t) pivot (sum(x) for a in (1, 2147483648))": "QRY009",
    "select * from (select a, m, x > 1 as b from ods.t) pivot (count(a) for b in (1, 2))": "QRY009",
    "select * from (select a, m, x from ods.t) pivot (sum(x), max(x) for m in ('jan'))": "QRY009",
    "select * from (select a, m, x, y from ods.t) pivot (sum(x) for (m, y) in (('jan', 1), ('jan', 1)))": "QRY009",
    "select * from (select a, m, x, y from ods.t) pivot (sum(x) for (m, y) in (('jan', null)))": "QRY009",
    "select * from (select f, x from ods.t) pivot (sum(x) for f in (1, 2))": "QRY009",
    "select * from (select a, m, s from ods.t) pivot (first(s) for m in ('jan'))": "QRY009",
    "select * from ods.t as t join ods.t as u on t.a = u.a pivot (sum(t.x) for t.m in ('jan'))": "QRY009",
    "select * from (select a, x, f from ods.t) unpivot (val for name in (x, f))": "TYP001",
}


@sample("sql", LIKE_DUCKDB, every=3)
def test_a_pivot_equals_its_recompute_after_each_batch(sql: str) -> None:
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy == LIKE_DUCKDB[sql], plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


@sample("sql", OF_SPARK, every=3)
def test_where_a_group_lacks_a_value_the_rows_are_those_of_spark(sql: str) -> None:
    """And those after changes are the rows of the same state from its start."""
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy != "full_refresh"
    assert final_rows(plan, COLUMNS, PATH[:1]) == sorted(OF_SPARK[sql], key=repr)
    for count, state in enumerate(PATH[1:], start=2):
        assert final_rows(plan, COLUMNS, PATH[:count]) == final_rows(plan, COLUMNS, [state])


def test_a_pivot_by_two_columns_is_one_by_both_in_one() -> None:
    calls = "sum(x) as t, count(x) as n"
    two = f"from (select a, m, s, x from ods.t) pivot ({calls} for (m, s) in (('jan', 'p') as j, ('feb', 'q')))"
    one = f"from (select a, concat(m, '/', s) as k, x from ods.t) pivot ({calls} for k in ('jan/p' as j, 'feb/q'))"
    plans = [compiled(f"select * {sql}", COLUMNS) for sql in (two, one)]
    assert plans[0].classification.strategy == "aggregate_merge", plans[0].classification.reasons
    assert [column.name for column in plans[0].facts.schema or ()] == ["a", "j_t", "j_n", "{feb, q}_t", "{feb, q}_n"]
    for count in range(1, len(PATH) + 1):
        rows = [final_rows(plan, COLUMNS, PATH[:count]) for plan in plans]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("sql", REBUILT)
def test_a_pivot_that_is_not_derived_is_a_full_refresh_that_says_so(sql: str) -> None:
    classification = compiled(sql, COLUMNS).classification
    assert classification.strategy == "full_refresh"
    assert [reason.rule for reason in classification.reasons] == [REBUILT[sql]]
