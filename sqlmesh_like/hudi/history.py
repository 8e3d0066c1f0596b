"""The `History` port over Hudi timelines and plain folders, without a JVM. Owns how table state is read from disk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile

from sqlmesh_like.errors import NodeError, SmlError, UnreadableTableError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.change_log import NotLoggedError, logs_between
from sqlmesh_like.hudi.commits import STATE_PREFIX, Commit, touched_groups
from sqlmesh_like.hudi.missing_files import lost_files
from sqlmesh_like.hudi.reading.recent_timelines import forget_timelines, listed_timeline, timeline_at
from sqlmesh_like.hudi.services.cleaning_due import is_cleaning_due
from sqlmesh_like.hudi.services.timeline_gap import gap_problem, require_no_gap
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.unfinished_table import rows_without_commit
from sqlmesh_like.names import KEY, PARTITION, Schema, is_hidden, is_store, visible
from sqlmesh_like.plan.history import (
    RECORD_KEY,
    ChangeVolume,
    CommitSummary,
    StoredLayout,
    TableRecord,
    TableState,
    Volume,
)
from sqlmesh_like.plan.side_by_side import side_by_side

_RECORD = STATE_PREFIX + RECORD_KEY
_PLAIN_PATHS = (
    ("hoodie.datasource.write.hive_style_partitioning", ("true",)),
    ("hoodie.datasource.write.partitionpath.urlencode", ("false", "")),
    ("hoodie.table.keygenerator.type", ("simple", "complex")),
)
"""Table properties, and their values, with which paths are `column=value` with the value's plain text."""
_TYPES_IN_PATHS = ("string", "int", "bigint", "date")
_UNREADABLE = (
    ("hoodie.populate.meta.fields", "false", "which rows a commit changed is unknown"),
    ("hoodie.datasource.write.drop.partition.columns", "true", "its files lack the partition columns"),
)


class LakeHistory:
    """Lists each table's timeline for its state: a plan pins what it read. Unchanged states are read once."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[frozenset[str], TableState]] = {}
        self._held: dict[str, Timeline] = {}
        self._kept: frozenset[str] = frozenset()

    @contextmanager
    def keep(self, uris: Iterable[str]) -> Iterator[None]:
        wanted, outer = [uri for uri in dict.fromkeys(uris) if is_store(uri)], self._kept
        unlisted = [uri for uri in wanted if uri not in self._held]
        forget_timelines(unlisted)  # files may have vanished since, which no listing of timelines shows
        timelines = side_by_side(self._try_timeline, unlisted)
        self._held.update((uri, each) for uri, each in zip(unlisted, timelines, strict=True) if each is not None)
        self._kept = outer.union(wanted)
        try:
            yield
        finally:
            self._kept = outer
            if not outer:
                self._held.clear()

    def _try_timeline(self, uri: str) -> Timeline | None:
        try:
            timeline = listed_timeline(uri)
            self._state_of(timeline)
        except SmlError:
            return None  # the node that wants it says so
        return timeline

    def renew(self, uri: str | None = None) -> None:
        if uri is None:
            self._held.clear()
        else:
            self._held.pop(uri, None)  # one step: models run in several threads

    def state(self, uri: str, format: str = "hudi") -> TableState:
        if format != "hudi":
            return TableState(uri, "files", listing_hash(uri), format=format)
        return self._state_of(self._held.get(uri) or listed_timeline(uri))

    def _state_of(self, timeline: Timeline) -> TableState:
        known = self._states.get(timeline.uri)
        if known is None or known[0] != timeline.names:
            known = (timeline.names, table_state(timeline))
            if known[1].exists:  # a table that is copied to its place has its properties last, and the same names
                self._states[timeline.uri] = known
        return known[1]

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        timeline = timeline_at(uri, start, end)
        if not timeline.holds(start):
            return f"commit {start} is no longer on the timeline"
        if not timeline.is_settled(start):
            return f"commit {start} was overtaken by a compaction"
        if problem := gap_problem(timeline, start):
            return problem
        touched = touched_groups(timeline.between(start, end))
        paths = [path for frontier in (start, end) for path in lost_files(timeline, frontier, touched)]
        return f"{len(paths)} data files of the change were cleaned, e.g. {paths[0]}" if paths else None

    def missing(self, uri: str) -> str | None:
        timeline = timeline_at(uri)
        if not timeline.commit_instants:
            return None
        # As of the newest commit, including services: files that were clustered or compacted may have been cleaned.
        newest = timeline.commit_instants[-1].frontier
        paths = lost_files(timeline, newest)
        return f"{len(paths)} of its data files are missing, e.g. {paths[0]}" if paths else None

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:
        timeline = timeline_at(uri, start, end)
        commits = [commit for commit in timeline.between(start, end) if commit.is_data]
        touched = touched_groups(commits)
        sizes = timeline.sizes(end)
        logged, compared = _log_bytes(timeline, start, end)
        written = sum(w.inserts + w.updates + w.deletes for commit in commits for w in commit.writes)
        return ChangeVolume(
            rows=written + sum(_replaced_rows(timeline, commit) for commit in commits),
            files=len(touched),
            bytes=sum(sizes[group].bytes for group in touched if group in sizes),
            partitions=len({partition for partition, _ in touched}),
            logged=logged,
            compared=compared,
        )

    def volume(self, uri: str, frontier: str) -> Volume:
        files = timeline_at(uri, frontier).sizes(frontier)
        total = sum(size.bytes for size in files.values())
        known = [size for size in files.values() if size.rows is not None]
        counted, of = sum(size.rows or 0 for size in known), sum(size.bytes for size in known)
        rows = counted * total // of if of else counted
        return Volume(total, rows, len(files), len({partition for partition, _ in files}))

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        return timeline_at(uri, frontier).repeats_keys(frontier)

    def last_write(self, uri: str) -> CommitSummary | None:
        timeline = listed_timeline(uri)
        if uri in self._kept:  # the node that writes this table has done so: it stays as it is listed here
            self._held[uri] = timeline
        newest = next((commit for commit in timeline.newest_first() if commit.is_data), None)
        return commit_summary(newest) if newest else None

    def exceeds(self, uri: str, commits: int) -> bool:
        return is_cleaning_due(timeline_at(uri), commits)

    def uncompacted_commits(self, uri: str) -> int:
        timeline = timeline_at(uri)
        if timeline.is_cow:
            return 0
        since = takewhile(lambda commit: commit.operation != "COMPACT", timeline.newest_first())
        return sum(commit.is_data for commit in since)

    def unread_commits(self, uri: str, start: str, since: str) -> int:
        timeline = timeline_at(uri, start)
        if timeline.properties.get("hoodie.table.timeline.timezone", "UTC").upper() != "UTC":
            since = ""  # its instants are local times, whose age is not known
        low = timeline.snapshot_instant(start)
        unread = [instant for instant in timeline.commit_instants if instant.requested > low]
        return len(unread) if unread and (unread[0].completed or "") >= since else 0

    def pending_commits(self, uri: str, start: str, end: str) -> int:
        return len(timeline_at(uri, start, end).between(start, end))


def _log_bytes(timeline: Timeline, start: str, end: str) -> tuple[int | None, str | None]:
    """Bytes of the logs that cover a range, or why none do. Opens no log."""
    try:
        return sum(log.bytes for log in logs_between(timeline, start, end)), None
    except NotLoggedError as error:
        return None, str(error)


def _replaced_rows(timeline: Timeline, commit: Commit) -> int:
    """Number of rows, right before a commit, in the file groups that it replaced."""
    if not commit.replaced_groups:
        return 0
    earlier = (instant.requested for instant in timeline.commit_instants if instant < commit.instant)
    before = max(earlier, default="")
    sizes = timeline.sizes(before)
    ended = {group: sizes[group].rows for group in commit.replaced_groups & sizes.keys()}
    counted = sum(rows for rows in ended.values() if rows is not None)
    slices = timeline.slices(before) if None in ended.values() else {}
    return counted + sum(timeline.count(slices[group].path) for group, rows in ended.items() if rows is None)


def table_state(timeline: Timeline) -> TableState:
    """State of one table from its timeline. Raises NodeError for a table that cannot be read correctly."""
    _require_readable(timeline)
    frontier = timeline.frontier if timeline.exists else None
    if frontier is None:
        if timeline.exists and (path := rows_without_commit(timeline.uri)):
            raise UnreadableTableError(f"{timeline.uri} has data files, e.g. {path}, and no commit")
        return TableState(timeline.uri, "missing")
    require_no_gap(timeline, frontier)
    schema_json = timeline.schema_json(frontier)
    columns = schema_of(schema_json) if schema_json else None
    record = _record(timeline)
    return TableState(
        uri=timeline.uri,
        kind="cow" if timeline.is_cow else "mor",
        frontier=frontier,
        record=record,
        schema=visible(columns) if columns else None,
        stored=columns,
        layout=_layout(timeline, record, columns or ()),
        is_foreign_on_top=record is not None and _has_foreign(timeline),
    )


def commit_summary(commit: Commit) -> CommitSummary:
    """The numbers of a commit, summed over its files."""
    writes = commit.writes
    changed = sum(w.inserts + w.updates + w.deletes for w in writes)
    rows, size = sum(w.rows for w in writes), sum(w.bytes for w in writes)
    return CommitSummary(commit.instant.frontier, rows, len(writes), size, changed)


def record_of(commit: Commit) -> TableRecord | None:
    """The record of a run in a commit's metadata; None for other commits. Raises UnreadableTableError."""
    text = commit.extra.get(_RECORD)
    try:
        return TableRecord.from_json(text) if text else None
    except (ValueError, TypeError) as error:
        raise UnreadableTableError(f"the record in commit {commit.instant.frontier} cannot be read: {error}") from error


def _has_foreign(timeline: Timeline) -> bool:
    """Whether a commit since the last full refresh, which replaces all rows, was not of a run."""
    for commit in timeline.newest_first():
        if not commit.is_data:
            continue
        record = record_of(commit)
        if record is None or record.strategy == "full_refresh":
            return record is None
    return False


def _record(timeline: Timeline) -> TableRecord | None:
    """The record in the newest commit of this project. Ingested tables have none there, so one commit is read."""
    if timeline.properties.get("hoodie.table.recordkey.fields", KEY) != KEY:
        return None
    for commit in timeline.newest_first():
        if (commit.is_data or commit.is_rewrite) and commit.is_ours:
            return record_of(commit)
    return None


def _require_readable(timeline: Timeline) -> None:
    properties, uri = timeline.properties, timeline.uri
    if properties.get("hoodie.timeline.layout.version", "2") != "2":
        version = properties.get("hoodie.table.version", "?")
        raise NodeError(f"{uri} has the table version {version} of an older Hudi", hint="upgrade it to version 8 or 9")
    for name, refused, why in _UNREADABLE:
        if properties.get(name) == refused:
            raise NodeError(f"{uri} was written with {name}={refused}: {why}", hint=f"write it anew without {name}")


def _layout(timeline: Timeline, record: TableRecord | None, columns: Schema) -> StoredLayout:
    """How partition paths follow from columns; without columns where that is uncertain, so that nothing is pruned."""
    if timeline.partition_fields == (PARTITION,) and record is not None:
        return StoredLayout(record.partition_by, encoded=True)
    fields = path_columns(timeline, columns)
    return StoredLayout(() if any(map(is_hidden, fields)) else fields, encoded=False)


def path_columns(timeline: Timeline, columns: Schema) -> tuple[str, ...]:
    """Partition columns whose values are plain text in paths, `name=value`; empty where that is uncertain."""
    types = {column.name: column.type for column in columns}
    is_plain = all(timeline.properties.get(name, "").lower() in wanted for name, wanted in _PLAIN_PATHS)
    is_text = all(types.get(field) in _TYPES_IN_PATHS for field in timeline.partition_fields)
    return timeline.partition_fields if is_plain and is_text else ()


def listing_hash(uri: str) -> str | None:
    """Frontier of a folder that is not a Hudi table: a hash of names, sizes and times; None where it has no files."""
    place = folder(uri)
    if not place.exists():
        return None
    entries = []
    for path in sorted(place.fs.find(place.path)):
        info = place.fs.info(path)
        entries.append(f"{path}|{info.get('size')}|{info.get('mtime') or info.get('LastModified') or info.get('ETag')}")
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()[:32] if entries else None
