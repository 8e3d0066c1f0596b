"""A table at an earlier time. Owns finding its frontier then, and whether it can still be read; needs no JVM."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from sqlmesh_like.errors import NodeError, UsageError, nearest
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.missing_files import lost_files
from sqlmesh_like.hudi.services.timeline_gap import require_no_gap
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import visible
from sqlmesh_like.plan.history import TableState

_INSTANT = re.compile(r"(\d{14}|\d{17})(_(\d{14}|\d{17}))?")


def state_at(state: TableState, when: str, timeline: Timeline | None = None) -> TableState:
    """The state of a Hudi table at an earlier time; `timeline`: the table's, where the caller has listed it.

    `when`: a commit as `sml history` prints it (or its first part), or an ISO 8601 time, UTC where it names no zone.
    Raises UsageError for other texts, NodeError where nothing was committed yet or files of that time are gone.
    """
    if state.kind not in ("cow", "mor"):
        raise NodeError(f"the table {state.uri} has no past", hint="only Hudi tables keep one")
    timeline = timeline or Timeline(state.uri)
    frontier = frontier_at(timeline, when)
    require_no_gap(timeline, frontier)
    if missing := lost_files(timeline, frontier):
        hint = "cleaning keeps what consumers still need and ten commits more; choose a later moment"
        raise NodeError(f"{len(missing)} data files of {state.uri} as of {frontier} were cleaned", hint=hint)
    text = timeline.schema_json(frontier)
    columns = schema_of(text) if text else None
    return replace(state, frontier=frontier, stored=columns, schema=visible(columns) if columns else None)


def frontier_at(timeline: Timeline, when: str) -> str:
    """The frontier at an earlier time; `when` and errors as in `state_at`."""
    commits = [commit.instant for commit in timeline.data_commits if timeline.is_readable(commit.instant)]
    if _INSTANT.fullmatch(when):
        for instant in commits:
            if when in (instant.requested, instant.frontier):
                return instant.frontier
        known = [instant.requested for instant in commits]
        raise NodeError(f"{timeline.uri} has no commit {when}", hint=nearest(when, known) or "see `sml history`")
    moment = _moment(timeline, when)
    newest = None
    for instant in commits:
        # Commits requested after one that was still under way were not visible yet.
        if (instant.completed or "") > moment:
            break
        newest = instant.frontier
    if newest is None:
        first = f"its first readable commit is {commits[0].frontier}" if commits else "it has no commits"
        raise NodeError(f"{timeline.uri} had nothing as of {when}: {first}")
    return newest


def _moment(timeline: Timeline, when: str) -> str:
    try:
        parsed = datetime.fromisoformat(when)
    except ValueError:
        hint = "e.g. 2024-05-01T00:00:00Z, or a commit of `sml history`"
        raise UsageError(f"{when!r} is neither an ISO 8601 time nor a commit", hint=hint) from None
    if timeline.properties.get("hoodie.table.timeline.timezone", "UTC").upper() != "UTC":
        raise UsageError(f"{timeline.uri} keeps local times of its writers", hint="name a commit of `sml history`")
    parsed = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return f"{parsed:%Y%m%d%H%M%S}{parsed.microsecond // 1000:03d}"
