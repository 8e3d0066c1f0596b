"""A table described from its timeline, without a JVM. Owns what users see of its commits."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.hudi.commits import Commit
from sqlmesh_like.hudi.history import commit_summary, record_of
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.table_facts import CommitFacts, TableFacts


def table_facts(catalog: Catalog, unique_id: str, commits: int = 20) -> TableFacts:
    """One table of the catalog with its newest commits up to its state's, oldest first.

    `problem` says why a table cannot be read.
    """
    place = catalog.places[unique_id]
    try:
        state = catalog.state(unique_id)
        if state.frontier is None or state.kind not in ("cow", "mor"):
            return TableFacts(unique_id, state)
        timeline = Timeline(place.uri)
        if timeline.frontier != state.frontier:  # an earlier state, such as that of a release
            timeline = Timeline(place.uri, timeline.snapshot_instant(state.frontier))
        newest = [commit_facts(commit) for commit in islice(timeline.newest_first(), commits)]
        volume = catalog.history.volume(place.uri, state.frontier)
    except (NodeError, UsageError) as error:
        return TableFacts(unique_id, TableState(place.uri, "missing"), problem=str(error))
    return TableFacts(unique_id, state, volume, state.layout.columns, tuple(reversed(newest)))


def commit_facts(commit: Commit) -> CommitFacts:
    """One commit as `sml history` shows it."""
    record, work = record_of(commit), commit_summary(commit)
    requested, completed = commit.instant.requested, commit.instant.completed or commit.instant.requested
    return CommitFacts(
        time=_iso_time(completed),
        instant=commit.instant.frontier,
        seconds=max((_moment(completed) - _moment(requested)).total_seconds(), 0.0),
        kind=commit.operation.lower(),
        strategy=record.strategy if record else None,
        inserts=sum(write.inserts for write in commit.writes),
        updates=sum(write.updates for write in commit.writes),
        deletes=sum(write.deletes for write in commit.writes),
        rows=work.rows,
        files=work.files,
        bytes=work.bytes,
        frontier=dict(record.frontier) if record else None,
        columns=commit.column_changes,
    )


def _iso_time(instant: str) -> str:
    """ISO 8601 in UTC with the precision of the instant: a time cut to the second would be before the commit.

    >>> _iso_time("20240501103000123"), _iso_time("20240501103000")
    ('2024-05-01T10:30:00.123Z', '2024-05-01T10:30:00Z')
    """
    moment = _moment(instant)
    return moment.isoformat(timespec="milliseconds" if len(instant) > 14 else "seconds").replace("+00:00", "Z")


def _moment(instant: str) -> datetime:
    """An instant (`yyyyMMddHHmmss` and, in newer tables, milliseconds) in UTC."""
    whole = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return whole.replace(microsecond=int(instant[14:17] or 0) * 1000)
