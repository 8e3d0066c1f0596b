"""Window functions over aggregates are maintained as windows above the groups."""

from __future__ import annotations

import pytest

from sqlmesh_like.errors import SqlError
from tests.levels import sample
from tests.properties.lake import T, U, check, compiled, schema

COLUMNS = schema(a="int", s="string", amount="decimal(10,2)")
QUERIES = (
    "select s, a, sum(amount) as x, rank() over (partition by s order by sum(amount)) as r from ods.t group by s, a",
    "select s, a, count(*) as n, sum(count(*)) over (partition by s) as k, count(*) * 2 as m from ods.t group by s, a",
    "select s, 100 * sum(a) / sum(sum(a)) over (partition by s) as share, a as b from ods.t group by 1, b",
    "select s, a, sum(a) as total, max(s) over (partition by a) as k from ods.t group by s, a having total > 0",
    "select t.s, u.a, avg(sum(t.a)) over (partition by t.s) as m from ods.t, ods.u where t.a = u.a group by t.s, u.a",
    "select s, row_number() over (partition by s order by count(*)) as nr from ods.t group by s, a",
)
START = {"1": (1, "x", 1), "2": (2, "x", 2), "3": (1, "y", None), "4": (None, "x", 3)}
PATH = (
    {T: START, U: {"1": (1, "x", 1)}},
    {T: {**START, "5": (1, "x", 9), "6": (3, None, 1)}, U: {"1": (2, "x", 1), "2": (1, "z", 1)}},
    {T: {"5": (1, "x", 9), "6": (2, None, 1), "2": (2, "y", 2)}, U: {"2": (1, "z", 1)}},
    {T: {}, U: {}},
    {T: START, U: {"1": (1, "x", 1)}},
)


@sample("sql", QUERIES, every=3)
def test_a_window_over_an_aggregate_equals_a_recompute(sql: str) -> None:
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy == "group_recompute", plan.classification.reasons
    done = check(plan, COLUMNS, PATH)
    assert all(actions.upserts or actions.deletes for actions in done)


def test_a_column_of_a_window_that_is_no_group_is_told() -> None:
    with pytest.raises(SqlError, match="neither in GROUP BY nor in an aggregate"):
        compiled("select s, rank() over (partition by a order by sum(amount)) as r from ods.t group by s", COLUMNS)


def test_a_reason_shows_a_quoted_column_as_it_was_written() -> None:
    plan = compiled(
        "select s, sum(sum(`a b`)) over (partition by s) as k from ods.t group by s",
        schema(s="string", **{"a b": "int"}),
    )
    messages = [reason.message for reason in plan.classification.reasons if reason.rule == "WIN001"]
    assert messages == ["SUM(SUM(`a b`)) OVER (PARTITION BY s)"]
