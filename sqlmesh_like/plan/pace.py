"""How long runs of a table took beside what was expected. Owns what its commits say of that.

A commit says when its work began and what it was to take; Hudi's completion time says when it ended. That is known only
afterwards, so each commit hands on the paces of the runs before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from sqlmesh_like.plan.history import TableRecord, TableState

_LEAST, _MOST = 0.05, 20.0
"""A pace beyond is that of a machine that slept, of a clock that was set, or of a commit that rewrote an older one."""


def paces(state: TableState) -> Mapping[str, float]:
    """Seconds taken ÷ seconds expected by strategy: the mean of its last run and those before, which count for less."""
    record = state.record
    if record is None or (taken := _seconds(state, record)) is None:
        return {} if record is None else record.paces
    pace = taken / record.seconds_expected
    if not _LEAST <= pace <= _MOST:
        return record.paces
    before = record.paces.get(record.strategy, pace)
    return {**record.paces, record.strategy: round((pace + before) / 2, 3)}


def _seconds(state: TableState, record: TableRecord) -> float | None:
    """What the newest run took; None where its commit does not say."""
    try:
        began = datetime.fromisoformat(record.started)
        _, _, completed = (state.frontier or "").partition("_")
        ended = datetime.strptime(completed, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)
        taken = (ended - began).total_seconds()
    except (ValueError, TypeError):
        return None
    return taken if taken > 0 and record.seconds_expected > 0 else None
