"""What a source's tables held when it last wrote them. Owns the note of it and seeing that a table went back since.

A checkpoint says which events were read, whatever became of the tables: after a restore from a backup, a rollback to a
savepoint or the loss of a file there would be "nothing new" for ever. The note is written after the commits of a
batch; where a process dies in between, it names an earlier commit, which is there as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from sqlmesh_like.cdc.sources.batch_marker import MARKER_KEY
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError, UnreadableTableError
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName

_FILE = "last.json"


def note_last_commits(place: SourcePaths, written: Iterable[TableName]) -> None:
    """Remember the newest commit of these tables."""
    known = _noted(place)
    uris = {table.table: place.table_uri(table) for table in place.source.tables}
    commits = {str(name): Timeline(uris[name]).frontier for name in written if name in uris}
    entries = {**known, **{name: frontier for name, frontier in commits.items() if frontier}}
    if entries == known:
        return
    notes = folder(place.last_commits)
    path = f"{notes.path}/{_FILE}"
    notes.fs.makedirs(notes.path, exist_ok=True)
    with notes.fs.open(f"{path}.new", "wb") as file:
        file.write(json.dumps(entries).encode())
    notes.fs.mv(f"{path}.new", path)


def forget_last_commits(place: SourcePaths) -> None:
    """Drop the note: all events will be read again."""
    notes = folder(place.last_commits)
    if notes.exists():
        notes.fs.rm(notes.path, recursive=True)


def require_last_commits(place: SourcePaths) -> None:
    """Raises IngestError where a table lacks a commit that its source made, or a file of its newest one.

    Needs no JVM. A commit that was archived is behind others and counts as there.
    """
    known = _noted(place)
    again = f"sml ingest -s source:{place.source.name} --from earliest"
    for table in place.source.tables:
        expected = known.get(str(table.table))
        if expected is None:
            continue
        try:
            problem = _loss(Timeline(place.table_uri(table)), expected)
            hint = f"restore it, or read all that the log still has again: {again}"
        except UnreadableTableError as error:
            problem, hint = error.message, f"restore that file; or move the table's folder away and run: {again}"
        if problem:
            message = f"{table.table} is not as its source left it: {problem}; nothing was ingested"
            raise IngestError(message, location=table.declared_at, hint=hint)


def _loss(timeline: Timeline, expected: str) -> str | None:
    """What a table has lost since the commit `expected` was its newest; None where nothing is known to be lost."""
    newest = next((commit for commit in timeline.newest_first() if commit.is_data), None)
    if newest is None:
        return f"it has no commit, and had {expected}"
    if not timeline.holds(expected) and not _is_archived(timeline, expected):
        batch = timeline.extra(STATE_PREFIX + MARKER_KEY)
        return f"commit {expected} is gone, its newest one is {newest.instant.frontier}" + _of(batch)
    # What was compacted or rewritten since may have been cleaned.
    if timeline.commit_instants[-1] != newest.instant:
        return None
    paths = (write.path for write in newest.writes if write.path.endswith(".parquet") or ".log." in write.path)
    gone = [path for path in paths if not timeline.folder.exists(path)]
    return f"{len(gone)} files of its newest commit are gone, e.g. {gone[0]}" if gone else None


def _is_archived(timeline: Timeline, expected: str) -> bool:
    first = timeline.commit_instants[0].requested
    return timeline.is_archived and expected.split("_")[0] < first


def _of(batch: str | None) -> str:
    return "" if batch is None else f", with events up to {json.loads(batch).get('offsets')}"


def _noted(place: SourcePaths) -> Mapping[str, str]:
    notes = folder(place.last_commits)
    if not notes.exists(_FILE):
        return {}
    data = json.loads(notes.read(_FILE))
    return {str(name): str(frontier) for name, frontier in data.items()}
