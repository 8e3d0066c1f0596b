"""The newest commit of each of a source's tables. Owns the record, and noticing that a table went back since.

A checkpoint says which events were read, whatever became of the tables: after a restore from a backup, a rollback to a
savepoint or the loss of a file there would be "nothing new" forever. The record is written after the commits of a
batch; if the process dies in between, it names an earlier commit, which exists as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.batch_marker import MARKER_KEY
from sqlmesh_like.cdc.sources.notes import read_notes
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError, UnreadableTableError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import SourceTable

_FILE = "last.json"
_DEAD_LETTERS = "dead_letters.json"
"""Commits that ingested dead letters: no position in the log shows that a table has these."""
_RESTARTED = "restarted.json"
"""Exists if the source was once read again from another start: its query does not know all that was ingested."""


@dataclass(frozen=True)
class WentBack:
    """A table that is not as its source left it.

    `is_whole`: the table can be written, and lacks only its newest commits. `lacks_dead_letters`: one of these ingested
    dead letters.
    """

    source: str
    table: SourceTable
    problem: str
    is_whole: bool
    lacks_dead_letters: bool = False

    @property
    def summary(self) -> str:
        return f"{self.table.table} is not as its source left it: {self.problem}"

    def error(self, why: str | None = None) -> IngestError:
        """The error that stops the ingestion. `why`: the reason that the table cannot be repaired."""
        again = f"sml ingest -s source:{self.source} --from earliest"
        hint = f"restore it, or read all that the log still has again: {again}"
        if not self.is_whole:
            hint = "restore that file, or move the table's folder away: `sml ingest` fills it again from its source; "
            hint += f"{again} where that does not have all of it"
        message = f"{self.summary}{'; ' + why if why else ''}; nothing was ingested"
        return IngestError(message, location=self.table.declared_at, hint=hint)


def note_last_commits(place: SourcePaths, written: Iterable[TableName], *, dead_letters: bool = False) -> None:
    """Record the newest commit of these tables; a table that went back keeps the commit that it should have.

    `dead_letters`: these commits ingested dead letters.
    """
    known, fresh = _read_frontiers(place, _FILE), dict[str, str]()
    uris = {table.table: place.table_uri(table) for table in place.source.tables}
    for name in written:
        timeline = Timeline(uris[name]) if name in uris else None
        before = known.get(str(name))
        if timeline is not None and (before is None or _is_there(timeline, before)):
            fresh |= {str(name): frontier for frontier in (timeline.frontier,) if frontier}
    if dead_letters:
        noted = _read_frontiers(place, _DEAD_LETTERS)
        _write(
            place, _DEAD_LETTERS, noted | {name: f"{noted.get(name, '')} {at}".strip() for name, at in fresh.items()}
        )
    if not fresh.items() <= known.items():
        _write(place, _FILE, {**known, **fresh})


def note_replayed(place: SourcePaths, table: SourceTable) -> None:
    """Accept a table as it is: the batches that it lacks are recorded elsewhere."""
    for name in (_DEAD_LETTERS, _FILE):
        entries = _read_frontiers(place, name)
        if entries.pop(str(table.table), None) is not None:
            _write(place, name, entries)
    note_last_commits(place, [table.table])


def forget_last_commits(place: SourcePaths) -> None:
    """Drop the record of commits: all events will be read again."""
    notes = folder(place.last_commits)
    if notes.exists():
        notes.fs.rm(notes.path, recursive=True)
        _write(place, _RESTARTED, {})


def was_restarted(place: SourcePaths) -> bool:
    """Whether the source was once read again from another start."""
    return folder(place.last_commits).exists(_RESTARTED)


def dead_letters_after(place: SourcePaths, table: SourceTable, frontier: str) -> bool:
    """Whether dead letters of a table were ingested after its commit `frontier`."""
    noted = _read_frontiers(place, _DEAD_LETTERS).get(str(table.table), "").split()
    return any(each.split("_")[0] > frontier.split("_")[0] for each in noted)


def tables_that_went_back(place: SourcePaths) -> list[WentBack]:
    """Tables that lack a commit that their source made, or a file of their newest commit.

    Needs no JVM. An archived commit is older than the active ones and counts as present.
    """
    known, replayed = _read_frontiers(place, _FILE), _read_frontiers(place, _DEAD_LETTERS)
    result = []
    for table in place.source.tables:
        expected = known.get(str(table.table))
        if expected is not None:
            result.append(_check_last_commit(place, table, expected, replayed.get(str(table.table), "").split()))
    return [each for each in result if each is not None]


def _check_last_commit(place: SourcePaths, table: SourceTable, expected: str, replayed: list[str]) -> WentBack | None:
    timeline, source = Timeline(place.table_uri(table)), place.source.name
    try:
        problem = _lost_commit(timeline, expected)
        if problem is not None:
            lacks = any(not _is_there(timeline, each) for each in replayed)
            return WentBack(source, table, problem, is_whole=True, lacks_dead_letters=lacks)
        problem = _lost_file(timeline)
    except UnreadableTableError as error:
        problem = error.message
    return WentBack(source, table, problem, is_whole=False) if problem else None


def _lost_commit(timeline: Timeline, expected: str) -> str | None:
    """A message about the lost commit `expected`, which was once the table's newest; None where it is present."""
    newest = next((commit for commit in timeline.newest_first() if commit.is_data), None)
    if newest is None:
        return f"it has no commit, and had {expected}"
    if not _is_there(timeline, expected):
        batch = timeline.extra(STATE_PREFIX + MARKER_KEY)
        events = "" if batch is None else f", with events up to {json.loads(batch).get('offsets')}"
        return f"commit {expected} is gone, its newest one is {newest.instant.frontier}{events}"
    return None


def _lost_file(timeline: Timeline) -> str | None:
    newest = next(commit for commit in timeline.newest_first() if commit.is_data)
    # After a later compaction or rewrite, these files may have been cleaned.
    if timeline.commit_instants[-1] != newest.instant:
        return None
    paths = (write.path for write in newest.writes if write.path.endswith(".parquet") or ".log." in write.path)
    gone = [path for path in paths if not timeline.folder.exists(path)]
    return f"{len(gone)} files of its newest commit are gone, e.g. {gone[0]}" if gone else None


def _is_there(timeline: Timeline, frontier: str) -> bool:
    if timeline.holds(frontier) or not timeline.commit_instants:
        return timeline.holds(frontier)
    return timeline.is_archived and frontier.split("_")[0] < timeline.commit_instants[0].requested


def _read_frontiers(place: SourcePaths, name: str) -> dict[str, str]:
    notes = folder(place.last_commits)
    if not notes.exists(name):
        return {}
    data = read_notes(notes, name)
    return {str(table): str(frontier) for table, frontier in data.items()}


def _write(place: SourcePaths, name: str, entries: Mapping[str, str]) -> None:
    notes = folder(place.last_commits)
    path = f"{notes.path}/{name}"
    notes.fs.makedirs(notes.path, exist_ok=True)
    with notes.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps(entries).encode())
    fault_point("ingest.last_commits")
    notes.fs.mv(f"{path}.new", path)
