"""What a run does when only its clock moved: nothing, follow the rows that cross, or rebuild."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sqlmesh_like.compiler import Compiler
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel, plan_model
from tests.properties.lake import T, U, model, schema

COLUMNS = schema(a="int", dt="date", at="timestamp")
MORNING = datetime(2024, 5, 1, 8, tzinfo=UTC)
EVENING = datetime(2024, 5, 1, 20, tzinfo=UTC)
TOMORROW = datetime(2024, 5, 2, 8, tzinfo=UTC)
_INPUT = TableState("ods/t", "cow", "1_2", schema=COLUMNS)
_BY_DATE = "select a from ods.t where dt = current_date"
_BY_TIME = "select a from ods.t where at < now()"
_AGE = "select a, datediff(current_date, dt) as age from ods.t where at < now()"


def planned(sql: str, now: datetime, *, refresh: str = "auto", kind: str = "cow") -> PlannedModel:
    """The plan at `now` of a model that a run this morning built, with no input moved since."""
    rendered = model(sql)
    rendered = replace(rendered, config=replace(rendered.config, refresh=refresh))  # type: ignore[arg-type]
    compiled = Compiler({T: COLUMNS}).compile(rendered)
    states = dict.fromkeys((T, U), replace(_INPUT, kind=kind))  # type: ignore[arg-type]
    first = plan_model(compiled, TableState("dws/m", "missing"), states, LakeHistory(), MORNING)
    record = first.record("full_refresh", 1, {})
    target = TableState("dws/m", "cow", "3_4", record)
    return plan_model(compiled, target, states, LakeHistory(), now)


@pytest.mark.parametrize(
    ("sql", "now", "strategy", "rule"),
    [
        (_BY_DATE, EVENING, "no_op", None),
        (_BY_DATE, TOMORROW, "row_based", "CLK002"),
        (_BY_TIME, MORNING, "no_op", None),
        (_BY_TIME, EVENING, "row_based", "CLK002"),
        (_AGE, EVENING, "row_based", "CLK002"),
        (_AGE, TOMORROW, "full_refresh", "CLK001"),
        ("select a from ods.t", TOMORROW, "no_op", None),
    ],
)
def test_only_what_the_clock_gives_another_value_moves(
    sql: str, now: datetime, strategy: str, rule: str | None
) -> None:
    plan = planned(sql, now)
    rules = {reason.rule for reason in plan.reasons}
    assert (plan.strategy, rule is None or rule in rules) == (strategy, True)


def test_a_strict_model_follows_the_clock_in_filters_and_refuses_a_rebuild() -> None:
    planned(_BY_DATE, TOMORROW, refresh="strict").require_allowed()
    with pytest.raises(NodeError, match=r"m\.sql:1:20: .*CLK001"):
        planned(_AGE, TOMORROW, refresh="strict").require_allowed()


def test_a_moved_clock_rebuilds_what_is_configured_to_be() -> None:
    assert planned(_BY_DATE, TOMORROW, refresh="full").strategy == "full_refresh"
    assert planned(_BY_DATE, TOMORROW, kind="files").strategy == "full_refresh"
