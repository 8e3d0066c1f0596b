"""Delta programs on hand-picked traps: after each batch the table equals a recompute, hidden state too (on DuckDB)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from sqlglot import exp

from sqlmesh_like.delta.emptiness import without_empty
from sqlmesh_like.delta.program import DeltaProgram
from tests.levels import parametrize, sample
from tests.properties.lake import check, compiled, final_rows, schema, states

COLUMNS = schema(a="int", d="decimal(10,2)", s="string", dt="date", b="boolean")
_ROW = (1, Decimal("1.50"), "x", date(2024, 1, 31), True)
_NULLS = (None, None, None, None, None)
PATH = states(
    {"1": _ROW, "2": _NULLS, "3": (0, Decimal("-1.50"), "X", date(2024, 2, 29), False)},
    {"1": (2, Decimal("1.50"), "10%", date(2024, 2, 1), None), "4": (-1, Decimal("0.00"), "", None, True)},
    {"1": None, "3": None, "2": (0, None, "x", None, None)},
    {"2": None, "4": None},
    {"5": _NULLS, "1": _ROW},
    {"5": (1, Decimal("0.01"), "x", None, None), "6": (1, Decimal("0.01"), "x", None, None)},
)

TRAPS = {
    "a scalar aggregate of no rows": "select count(*) as n, sum(a) as x, min(s) as l, avg(d) as v from ods.t",
    "a scalar aggregate without extrema": "select count(*) as n from ods.t where a > 5",
    "a constant key": "select count(*) as n from ods.t group by 'c'",
    "a shown constant key": "select 7 as k, count(*) as n from ods.t group by 1",
    "two constant keys": "select 'a' as k, 1 as l, count(a) as n from ods.t group by k, l",
    "no aggregate at all": "select s from ods.t group by s",
    "a key that is not shown": "select count(*) as n from ods.t group by s",
    "the same key twice": "select s, s as r, count(*) as n from ods.t group by s, s, r",
    "count of NULL": "select s, count(null) as n from ods.t group by s",
    "count of a literal": "select s, count(1) as n, count('x') as k, count(true) as l from ods.t group by s",
    "a filter that is NULL":
        "select s, count(*) filter (where b) as n, sum(a) filter (where b) as x from ods.t group by s",
    "count(1) with a filter": "select count(1) filter (where a > 0) as n from ods.t",
    "a sum over a boolean CASE": "select sum(case when b then 1 else 0 end) as n from ods.t",
    "texts that differ only in case":
        "select sum(case when s = 'x' then 1 end) as n, sum(case when s = 'X' then 1 end) as k from ods.t",
    "decimals of different scale": "select s, sum(case when b then d else 0 end) as x, min(coalesce(d, 0.125)) as y"
                                   " from ods.t group by s",
    "a division by zero": "select s, sum(a) / count(b) as x, sum(d) / sum(a) as y from ods.t group by s",
    "integer division and modulo": "select a, a % 2 as m, cast(a / 2 as int) as h from ods.t",
    "modulo of a key": "select a % 2 as m, count(*) as n from ods.t group by a % 2",
    "LIKE with an escape": r"select a, s like '10\\%' as p from ods.t where s is null or s like '1%' or s <> 'q'",
    "dates": "select date_trunc('month', dt) as m, year(dt) as y, date_add(dt, 1) as t, last_day(dt) as l from ods.t",
    "a month as key": "select date_format(dt, 'yyyyMM') as m, count(*) as n, max(dt) as l from ods.t group by 1",
    "expressions over aggregates": "select s, case when count(*) > 1 then max(a) + min(a) else -1 end as x,"
                                   " coalesce(sum(d), 0) * 2 as y from ods.t group by s",
    "an expression over a key": "select concat(s, '!') as k, count(*) as n from ods.t group by s",
    "a union of one CTE with itself": "with c as (select s, a from ods.t) select s, sum(a) as x from"
                                      " (select * from c union all select * from c) as u group by s",
    "nested unions": "(select a from ods.t union all select a from ods.t) union all (select a + 1 as a from ods.t)",
    "swapped names": "select n as a, cast(m as int) as n from (select a as n, cast(a as bigint) as m from ods.t) as a",
    "an equality in every branch of an OR": "select l.a, r.s from ods.t as l join ods.t as r"
        " on (l.a = r.a and l.b) or (l.a = r.a and r.d > 0) or (r.s <=> 'x' and l.a = r.a)",
    "a branch of an OR that is that equality": "select l.a, r.s, l.b from ods.t as l join ods.t as r"
        " on l.a = r.a or (l.b and l.a = r.a)",
    "a comparison of two tables that a third joins": "select l.a, m.d, r.s from ods.t as l join ods.t as m on l.s = m.s"
        " join ods.t as r on m.a = r.a and (l.d > r.d or r.d is null)",
    "NULL-safe equality": "select a, s <=> null as x from ods.t where b <=> null or b",
    "extrema of every type": "select min(a) as x, max(d) as y, min(s) as z, max(dt) as v, min(b) as w from ods.t",
    "an average of a filtered decimal": "select s, avg(d) filter (where a > 0) as x from ods.t group by s",
}  # fmt: skip


@sample("trap", TRAPS, every=3)
def test_the_table_follows_every_change(trap: str) -> None:
    plan = compiled(TRAPS[trap], COLUMNS)
    assert plan.classification.strategy in ("row_based", "aggregate_merge"), plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


COMPARISONS = {
    "a key": "select a <=> 1 as k, a > 0 as l, count(distinct s) as n from ods.t group by a <=> 1, a > 0",
    "in a query": "select a, s from ods.t where (a > 0) in (select b from ods.t where a is null)",
    "an order": "select s, max_by(a, d > 0) as x, count(distinct a) as n from ods.t group by s",
    "an order that is kept": "select s, max_by(a, d > 0) as x from ods.t group by s",
}


@pytest.mark.parametrize("sql", COMPARISONS.values(), ids=COMPARISONS)
def test_a_comparison_keeps_its_parentheses_where_it_becomes_an_operand(sql: str) -> None:
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy in ("group_recompute", "aggregate_merge"), plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


@parametrize("name", suite=["x", "groups"], release="arngkudoemfwbct")
def test_a_column_named_like_an_alias_of_the_compiler_is_that_column(name: str) -> None:
    columns = schema(**{name: "string", "v": "int"})
    path = states({"1": ("x", 1), "2": (None, 2)}, {"1": (None, 1), "3": ("x", 3)}, {"2": None, "3": ("y", 3)})
    merged = compiled(f"select {name}, sum(v) as total, min(v) as low from ods.t group by {name}", columns)
    scanned = compiled(f"select {name}, count(distinct v) as total from ods.t group by {name}", columns, [name])
    union = compiled(f"select {name} from (select {name} from ods.t union all select {name} from ods.u) as q", columns)
    for plan in (merged, scanned, union):
        assert plan.table.program or plan.table.rescan
        assert check(plan, columns, path)


def test_a_group_that_died_comes_back() -> None:
    plan = compiled("select s, count(*) as n, sum(a) as x from ods.t group by s", COLUMNS)
    path = states({"1": _ROW}, {"1": None}, {"2": _ROW})
    assert final_rows(plan, COLUMNS, path[:2]) == []
    assert final_rows(plan, COLUMNS, path) == [("x", 1, 1)]


def test_a_scalar_aggregate_keeps_its_row_when_all_rows_leave() -> None:
    plan = compiled("select count(*) as n, sum(a) as x from ods.t", COLUMNS)
    assert final_rows(plan, COLUMNS, states({"1": _ROW}, {"1": None})) == [(0, None)]


def test_a_partition_that_loses_its_last_row_is_emptied() -> None:
    plan = compiled("select s, count(distinct a) as n from ods.t group by s", COLUMNS, ["s"])
    assert final_rows(plan, COLUMNS, states({"1": _ROW, "2": _NULLS}, {"2": None})) == [("x", 1)]


def test_only_touched_partitions_are_rewritten() -> None:
    plan = compiled("select s, count(distinct a) as n from ods.t group by s", COLUMNS, ["s"])
    (actions,) = check(plan, COLUMNS, states({"1": _ROW, "2": _NULLS}, {"2": (5, None, None, None, None)}))
    assert (actions.upserts, actions.deletes) == (1, 0)


def test_a_change_of_unused_columns_is_no_action() -> None:
    plan = compiled("select s, max(a) as n from ods.t group by s", COLUMNS)
    (actions,) = check(plan, COLUMNS, states({"1": _ROW}, {"1": (*_ROW[:3], None, None)}))
    assert (actions.upserts, actions.deletes) == (0, 0)


def test_rows_behind_an_unaffected_extremum_are_not_read_again() -> None:
    """`recomputed` reads the input only for groups whose extremum may be gone."""
    plan = compiled("select s, min(a) as n from ods.t group by s", COLUMNS)
    program = plan.table.program
    assert isinstance(program, DeltaProgram)
    (step,) = [step for step in program.steps if any(t.db == "current" for t in step.query.find_all(exp.Table))]
    assert without_empty(step.query.copy(), lambda table: table.name == "stale") is None
