"""What a plan says would make it cheaper does: the model that follows the hint has a cheaper plan and the same rows.

First the advice of each rule, as `docs/rules.md` has it, on an example; then that of plans, tried on each query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal

import pytest

from sqlmesh_like.classify.advice.rewritings import REWRITINGS
from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from tests.properties.lake import T, U, check, compiled, schema

CHEAPEST_FIRST = ("row_based", "aggregate_merge", "partition_rescan", "group_recompute", "full_refresh")
COLUMNS = schema(
    a="int", d="decimal(10,2)", s="string", dt="date", b="boolean", f="double", arr="array<int>", n="string",
    m="map<string,int>", e="string",
)  # fmt: skip
ROWS = {
    "1": (1, Decimal("1.50"), "x", "2024-01-01", True, 0.5, [1, 2], "1", None, "2024-01-01"),
    "2": (2, Decimal("2.50"), "x", "2024-01-01", False, 1.5, [2], "2", None, "2024-01-01"),
    "3": (3, Decimal("0.25"), "y", "2024-01-02", True, 2.5, [], "3", None, "2024-01-04"),
}
CHANGED = {
    "1": (1, Decimal("1.75"), "y", "2024-01-03", True, 4.5, [3], "1", None, "2024-01-01"),
    "3": (3, Decimal("0.25"), "y", "2024-01-02", True, 2.5, [], "3", None, "2024-01-04"),
    "4": (4, Decimal("9.00"), "x", "2024-01-01", True, 1.5, [1], "4", None, None),
}
BY_S = ("s",)


@dataclass(frozen=True)
class Followed:
    """A model with a hint, and the one that follows it. Without `is_equal` the hint is to ask for something else."""

    before: str
    after: str
    before_by: tuple[str, ...] = ()
    after_by: tuple[str, ...] = ()
    is_equal: bool = True


def partitioned(sql: str) -> Followed:
    return Followed(sql, sql, after_by=BY_S)


FOLLOWED = {
    "AGG002": partitioned("select s, count(distinct a) as r from ods.t group by s"),
    "AGG003": Followed(
        "select s, sum(f) as r from ods.t group by s",
        "select s, sum(cast(f as decimal(18,2))) as r from ods.t group by s",
    ),
    "AGG004": Followed(
        "select s, sum(from_csv(s, 'a int').a) as r from ods.t group by s",
        "select s, sum(cast(from_csv(s, 'a int').a as decimal(18,2))) as r from ods.t group by s",
        is_equal=False,  # DuckDB has no such function
    ),
    "AGG005": partitioned("select s, median(a) as r from ods.t group by s"),
    "AGG006": Followed(
        "select s, sort_array(collect_list(distinct a)) as r from ods.t group by s",
        "select s, sort_array(collect_set(a)) as r from ods.t group by s",
    ),
    "AGG008": partitioned("select s, collect_list(a) as r from ods.t group by s"),
    "KEY001": Followed(
        "select f, count(*) as r from ods.t group by f",
        "select cast(f as decimal(18,2)) as f, count(*) as r from ods.t group by cast(f as decimal(18,2))",
    ),
    "KEY002": Followed(
        "select distinct arr from ods.t", "select distinct cast(arr as string) as arr from ods.t", is_equal=False
    ),
    "AGG007": Followed(
        "select sum(r) as r from (select s, sum(f) as r from ods.t group by s) as q",
        "select sum(r) as r from (select s, sum(cast(f as decimal(18,2))) as r from ods.t group by s) as q",
    ),
    "JOI003": Followed(
        "select t.s, u.b from ods.t left join ods.u on t.a = u.n",
        "select t.s, u.b from ods.t left join ods.u on t.a = cast(u.n as int)",
    ),
    "NST001": partitioned("select s, count(*) as r from ods.t group by s having count(*) > 1"),
    "SET001": partitioned("select s from ods.t except all select s from ods.t where a > 2"),
    "DST001": partitioned("select distinct s, b from ods.t"),
    "WIN001": partitioned("select s, rank() over (partition by s order by a) as r from ods.t"),
    "PAR002": Followed(
        "select s, upper(s) as k, median(a) as r from ods.t group by s, upper(s)",
        "select s, upper(s) as k, median(a) as r from ods.t group by s, upper(s)",
        before_by=("k",), after_by=BY_S,
    ),
    "QRY002": Followed(
        "select s, max(a) as a from ods.t group by s having a > 1",
        "select s, max(a) as largest from ods.t group by s having largest > 1",
        is_equal=False,  # of the first, nobody can say which `a` is meant
    ),
    "QRY007": Followed(
        "select s, explode(arr) as x, rank() over (partition by s order by a) as r from ods.t",
        "select s, x, r from (select s, arr, rank() over (partition by s order by a) as r from ods.t) as q"
        " lateral view explode(arr) e as x",
        is_equal=False,
    ),
    "QRY008": Followed("select s from elsewhere.v", "select s from ods.u", is_equal=False),
    "QRY010": Followed(
        "select s, count(*) as r from ods.t group by rollup(s, upper(s))",
        "select s, count(*) as r from ods.t group by rollup(s)",
        is_equal=False,
    ),
    "QRY012": Followed(
        "select s, (select sum(a) from ods.u where u.f = t.f) as r from ods.t",
        "select t.s, q.r from ods.t left join (select cast(f as decimal(18,2)) as k, sum(a) as r from ods.u group by 1)"
        " as q on q.k = cast(t.f as decimal(18,2))",
    ),
    "FUN001": Followed("select s, own(a) as r from ods.t", "select s, abs(a) as r from ods.t", is_equal=False),
    "CLK001": Followed(
        "select s, datediff(current_date(), dt) as r from ods.t", "select s, dt from ods.t where dt < current_date()",
        is_equal=False,
    ),
    "CLK003": Followed(
        "select distinct s from ods.t where dt < current_date()",
        "select distinct s from ods.t where dt < current_date()",
        before_by=BY_S, is_equal=False,
    ),
    "TYP001": Followed(
        "select s, explode(from_csv(s, 'a array<int>').a) as x from ods.t",
        "select s, explode(cast(from_csv(s, 'a array<int>').a as array<int>)) as x from ods.t",
        is_equal=False,  # DuckDB has no such function
    ),
    "TYP002": Followed("select s, m from ods.t", "select s, n from ods.t", is_equal=False),
}  # fmt: skip
OF_SETTINGS = {
    "PYT001",
    "INP002",
    "CST001",
    "CST003",
    "CFG002",
    "CFG004",
    "CFG005",
    "CFG006",
    "CFG007",
    "FRZ002",
    "SLC003",
}
"""Rules whose hint is about a setting or the lake, not about SQL."""


def test_each_hint_about_sql_is_followed_here() -> None:
    assert {rule.id for rule in RULES.values() if rule.advice} - OF_SETTINGS == set(FOLLOWED)


@pytest.mark.parametrize("rule", FOLLOWED)
def test_a_model_that_follows_a_hint_has_a_cheaper_plan_and_the_same_rows(rule: str) -> None:
    case = FOLLOWED[rule]
    before, after = (
        compiled(sql, COLUMNS, by) for sql, by in ((case.before, case.before_by), (case.after, case.after_by))
    )
    given = before.classification
    assert rule in {reason.rule for reason in given.reasons}, given
    strategies = [CHEAPEST_FIRST.index(each.classification.strategy) for each in (before, after)]
    rebuilds = {each.rule for each in after.classification.reasons}
    assert strategies[1] < strategies[0] or rule not in rebuilds, after.classification
    assert after.classification.strategy != "full_refresh", after.classification
    if case.is_equal:
        assert _rows(before) == _rows(after)
        check(after, COLUMNS, [{T: ROWS, U: ROWS}, {T: CHANGED, U: CHANGED}])


@dataclass(frozen=True)
class Tried:
    """A query, the rule that has advice on it, and that advice; `by`: the columns that partition it."""

    sql: str
    rule: str
    hint: str
    by: tuple[str, ...] = ()


DAYS = "set partition_by='dt': partition_rescan"
TRIED = (
    Tried("select s, dt, count(distinct a) as r from ods.t group by s, dt", "AGG002", DAYS),
    Tried("select dt, upper(s) as k, median(a) as r from ods.t group by dt, upper(s)", "AGG005", DAYS),
    Tried("select dt, collect_set(a) as r from ods.t group by dt", "AGG008", DAYS),
    Tried("select dt, count(*) as r from ods.t group by dt having count(*) > 1", "NST001", DAYS),
    Tried("select dt from ods.t except all select dt from ods.t where a > 2", "SET001", DAYS),
    Tried("select distinct dt, b from ods.t", "DST001", DAYS),
    Tried("select dt, rank() over (partition by dt order by a) as r from ods.t", "WIN001", DAYS),
    Tried("select distinct dt, upper(s) as k from ods.t", "DST001", DAYS, ("k",)),
    Tried("select upper(s) as k, sum(a) as r from (select distinct s, a from ods.t) as q group by upper(s)", "PAR002",
          "remove partition_by: aggregate_merge", ("k",)),
    Tried("select s, sum(a) as r from (select distinct s, a from ods.t where dt < current_date()) as q group by s",
          "CLK003", "remove partition_by: aggregate_merge", BY_S),
    Tried("select t.s, u.b from ods.t left join ods.u on t.a = u.n", "JOI003",
          "write t.a = CAST(u.n AS INT), as Spark compares them"),
    Tried("select t.s, u.b from ods.t left join ods.u on t.b and u.d = t.a", "JOI003",
          "write CAST(u.d AS DECIMAL(12, 2)) = CAST(t.a AS DECIMAL(12, 2)), as Spark compares them"),
    Tried("select t.a, t.b from ods.t left anti join ods.u on t.dt = u.e", "JOI003",
          "write t.dt = CAST(u.e AS DATE), as Spark compares them"),
    Tried("select s, sort_array(collect_list(distinct a)) as r from ods.t group by s", "AGG006",
          "write COLLECT_SET(a): group_recompute"),
)  # fmt: skip
UNADVISED = (
    *(FOLLOWED[rule].before for rule in ("AGG003", "AGG004", "KEY001", "KEY002", "AGG007", "QRY002", "QRY007")),
    *(FOLLOWED[rule].before for rule in ("QRY010", "QRY012", "FUN001", "CLK001", "TYP001", "TYP002")),
    "select s, mode(a) as r from ods.t group by s",
    "select s, percentile_approx(a, 0.5) as r from ods.t group by s",
    "select t.s, u.b from ods.t left join ods.u on t.f = u.n",
    "select t.s, u.b from ods.t left join ods.u on t.f = u.f",
    "select t.s, u.b from ods.t left join ods.u on t.a > u.a",
    "select s, sum(a) as r from ods.t group by s",
    "select a, count(distinct s) as r from ods.t group by a",
    "select a, sum(r) over (partition by a) as r from (select a, max(d) as r from ods.t group by a) as q limit 3",
    "select f, count(distinct a) as n from ods.t group by f",
)


@pytest.mark.parametrize("case", TRIED, ids=lambda case: f"{case.rule} {case.sql[:60]}")
def test_advice_has_been_tried_on_the_query(case: Tried) -> None:
    before = compiled(case.sql, COLUMNS, case.by)
    hints = {reason.rule: reason.hint for reason in before.advised.reasons if reason.hint}
    assert hints == {case.rule: case.hint}, before.classification
    after = next(each for each in rewritten(before, case.rule) if case.hint.startswith(each[0]))[1]
    assert after.classification.strategy != "full_refresh"
    assert CHEAPEST_FIRST.index(after.classification.strategy) <= CHEAPEST_FIRST.index(before.classification.strategy)
    assert case.rule != "JOI003" or "JOI003" not in {reason.rule for reason in after.classification.reasons}
    if case.rule != "AGG006":  # DuckDB has another order in such a list
        assert _rows(before) == _rows(after)
    check(after, COLUMNS, [{T: ROWS, U: ROWS}, {T: CHANGED, U: CHANGED}])


def test_each_kind_of_rewriting_has_a_case() -> None:
    assert {case.rule for case in TRIED} == set(REWRITINGS)


@pytest.mark.parametrize("sql", UNADVISED)
def test_nothing_is_advised_that_has_other_rows_or_does_not_help(sql: str) -> None:
    model = compiled(sql, COLUMNS)
    assert not [reason for reason in model.advised.reasons if reason.hint], model.advised.reasons


def rewritten(model: CompiledModel, rule: str) -> Iterator[tuple[str, CompiledModel]]:
    for rewrite in REWRITINGS[rule]:
        for candidate in rewrite(model.facts):
            yield candidate.advice, Compiler({T: COLUMNS, U: COLUMNS}).compile(candidate.model)


def _rows(model: CompiledModel) -> list[tuple[str, ...]]:
    with closing(MemoryLake({T: COLUMNS, U: COLUMNS})) as lake:
        lake.build(model, {T: ROWS, U: ROWS})
        rows = lake.rows()
    return sorted(tuple(str(float(v)) if isinstance(v, Decimal) else str(v) for v in row) for row in rows)
