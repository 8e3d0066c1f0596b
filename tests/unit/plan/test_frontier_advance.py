"""When the frontier of a table moves past a change that had no effect on its rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from sqlmesh_like.plan.frontier_advance import defers_frontier
from sqlmesh_like.plan.history import TableState, Volume
from tests.unit.plan.test_clock import EVENING, planned

LAST = f"{EVENING:%Y%m%d%H%M%S}000"


@pytest.mark.parametrize(
    ("warehouse", "seconds", "size", "is_later"),
    [
        ("/lake", 1, 10, False),
        ("s3a://lake", 1, 10, True),
        ("s3a://lake", 60, 10, False),
        ("s3a://lake", 1, 10_000_000, False),
        ("hdfs://name/lake", 1, 10, True),
    ],
)
def test_a_commit_is_left_to_a_later_run_only_on_a_store_while_more_may_follow(
    warehouse: str, seconds: int, size: int, is_later: bool
) -> None:
    plan = planned("select a from ods.t", EVENING)
    moved = replace(plan.inputs[0], end=f"{LAST}_{LAST}", volume=Volume(bytes=size))
    target = TableState(f"{warehouse}/dws/m", "cow", "3_4", plan.target.record)
    later = replace(plan, target=target, inputs=(moved,), now=EVENING + timedelta(seconds=seconds))
    assert defers_frontier(later) is is_later
