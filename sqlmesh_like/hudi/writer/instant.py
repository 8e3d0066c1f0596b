"""Instants, by which commits are named. Owns which one is next, and which names on a timeline are of other writers."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.timeline import Timeline

INSTANT = re.compile(r"\d{17}")
LONGEST_WAIT = 5.0
"""Seconds for which a write by Spark waits for the clock."""


def foreign_names(names: Iterable[str], instant: str, others: Collection[str]) -> list[str]:
    """Names on a timeline that neither belong to a commit in flight nor were there before it, among `others`.

    Not compared by time: if the clock was set back, a later writer has an earlier instant.
    """
    known = frozenset(others)
    return [name for name in names if INSTANT.match(name) and name[:17] != instant and name not in known]


def next_instant(names: Iterable[str]) -> str:
    """The present time in UTC as an instant, or one right after the newest instant where that is not later."""
    newest = max((text for name in names for text in INSTANT.findall(name)), default="")
    now = datetime.now(UTC)
    if newest >= _format_instant(now):
        now = _moment(newest) + timedelta(milliseconds=1)
    return _format_instant(now)


def require_clock_past(timeline: Timeline) -> None:
    """Wait until the clock is past the newest instant of a table, from which Hudi's writer takes the next one.

    Raises NodeError where the clock is more than a few seconds behind: it was set back, or another machine's is ahead.
    """
    newest = max((text for name in timeline.names for text in INSTANT.findall(name)), default="")
    behind = (_moment(newest) - datetime.now(UTC)).total_seconds() if newest else 0.0
    if behind > LONGEST_WAIT:
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
        hint = "set the clock right (or wait until then), then the same command again"
        raise NodeError(
            f"{timeline.uri}: its newest instant is {newest}, and the clock of this machine is at {now} UTC: a commit"
            " now would count as an older one",
            hint=hint,
        )
    if behind >= 0 and newest:
        time.sleep(behind + 0.002)


def _moment(instant: str) -> datetime:
    return datetime.strptime(instant, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)


def _format_instant(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%S%f")[:17]
