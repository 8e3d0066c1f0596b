"""When the models of `sml watch` run: no JVM."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

import pytest

from sqlmesh_like.app.lakes.lake_lock import HeldLocks
from sqlmesh_like.app.operations import watch_loop
from sqlmesh_like.app.operations.watch_loop import WatchLoop
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.names import TableName
from sqlmesh_like.run.result import RunResult

USER = TableName("ods", "user")


class Counted(WatchLoop):
    """Rounds that only count; the next one ends as `outcome` says."""

    outcome = RunResult()
    count = 0

    def _run_round(self) -> None:
        self.count += 1
        self.result = self.outcome


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(watch_loop, "monotonic", lambda: now[0])
    return now


def rounds() -> Counted:
    return Counted(cast(Any, None), HeldLocks(""), (), cast(Any, None), ExitStack)


def reports(table: TableReport) -> IngestReport:
    return IngestReport("shop", (table,))


def test_the_first_round_comes_at_once_and_idle_ones_by_the_clock(clock: list[float]) -> None:
    watched = rounds()
    watched()
    watched()
    assert watched.count == 1
    clock[0] += watch_loop.IDLE_SECONDS
    watched()
    assert watched.count == 2


@pytest.mark.parametrize(
    ("table", "rounds_after"),
    [
        (TableReport(USER, upserts=1), 2),
        (TableReport(USER, deletes=1), 2),
        (TableReport(USER, late=3), 1),
        (TableReport(USER, replayed=9), 1),
        (TableReport(USER, error="disk full"), 1),
    ],
)
def test_only_a_batch_that_changed_a_table_brings_a_round(
    clock: list[float], table: TableReport, rounds_after: int
) -> None:
    watched = rounds()
    watched()
    watched.on_batch(reports(table))
    watched()
    watched()
    assert watched.count == rounds_after


def test_what_failed_waits_for_a_change(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    watched = rounds()
    monkeypatch.setattr(RunResult, "ok", property(lambda _: watched.count == 0))
    watched()
    clock[0] += 10 * watch_loop.IDLE_SECONDS
    watched()
    assert watched.count == 1
    watched.on_batch(reports(TableReport(USER, upserts=1)))
    watched()
    assert watched.count == 2
