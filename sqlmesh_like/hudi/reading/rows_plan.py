"""The rows of a table at a frontier: base files, base files with the change logs since, or slices that must be merged.

Snapshots are planned from the files that the timeline names, not left to Hudi's reader: a list of files is stable while
commits overlap, keeps the types that partition paths lose, and can be cut down to partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.change_log import ChangeLog, NotLoggedError, chained_logs, log_of, logged_columns
from sqlmesh_like.hudi.commits import FileGroup, Slice, touched_groups
from sqlmesh_like.hudi.file_schemas import spark_schema_of
from sqlmesh_like.hudi.missing_files import DataFile, archived_logs, lost_files, slice_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT, Schema, is_hidden


@dataclass(frozen=True)
class RowKey:
    """Where `_sml_key`, which identifies a row, comes from.

    `is_stored`: it is a column. Otherwise it is composed: partition path and record key, because a record key is unique
    at most within its partition. `has_number`: rows may share both (`Timeline.repeats_keys`) and differ only in the
    number that their last writer gave them.
    """

    is_stored: bool
    has_number: bool = False


@dataclass(frozen=True)
class LogRows:
    """Signed rows in change logs of the same columns (`columns`: Spark's JSON). Paths are relative to the table."""

    columns: str
    paths: tuple[str, ...]
    rows: int

    @property
    def schema(self) -> Schema:
        return spark_schema_of(self.columns)


@dataclass(frozen=True)
class BaseFiles:
    """All rows of these files."""

    slices: tuple[Slice, ...]

    @property
    def paths(self) -> list[str]:
        """All files, relative to the table."""
        return [each.path for each in self.slices]


@dataclass(frozen=True)
class Overlay:
    """Base files of a merge-on-read table, and the change logs of the commits since, oldest first.

    Rows: all of `whole` (file groups that none of these commits wrote to), those of `changed` whose `identity` is in no
    log, and of each identity in the logs the newest row, unless it left. Identities compare NULL-safe. In one log the
    row that entered is newer than the one that left.
    """

    whole: tuple[Slice, ...]
    changed: tuple[Slice, ...]
    logs: tuple[LogRows, ...]
    identity: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """All files, relative to the table."""
        logs = (path for log in self.logs for path in log.paths)
        return [*(base.path for base in (*self.whole, *self.changed)), *logs]


@dataclass(frozen=True)
class SliceMerge:
    """File slices with log files, which only Hudi's own code can merge: their format and merge rules are Hudi's.

    `instant`: of the slices. `partitions`, `groups`: at least these partition paths, or file groups, are needed (None:
    all). `why`: what rules out change logs.
    """

    instant: str
    why: str
    partitions: frozenset[str] | None = None
    groups: frozenset[FileGroup] | None = None


Source = BaseFiles | Overlay | SliceMerge


@dataclass(frozen=True)
class RowsPlan:
    """A table's rows at a frontier (grain: one row per record)."""

    source: Source
    key: RowKey


def plan_rows(
    timeline: Timeline, frontier: str, columns: Collection[str], partitions: Collection[str] | None = None
) -> RowsPlan:
    """Plan a read of these columns. `partitions`: base files of other partition paths are left out.

    Raises RetryableError where the frontier or files of it are gone: reading the rest would return fewer rows.
    """
    require_readable(timeline, frontier)
    return RowsPlan(_source(timeline, frontier, columns, partitions), row_key(timeline, frontier))


def _source(timeline: Timeline, frontier: str, columns: Collection[str], partitions: Collection[str] | None) -> Source:
    if timeline.is_cow:
        return BaseFiles(_within(timeline.slices(frontier).values(), partitions))
    try:
        return _overlay(timeline, frontier, columns, partitions)
    except NotLoggedError as error:
        within = None if partitions is None else frozenset(partitions)
        return SliceMerge(timeline.as_of(frontier), str(error), within)


def _overlay(
    timeline: Timeline, frontier: str, columns: Collection[str], partitions: Collection[str] | None
) -> BaseFiles | Overlay:
    """A merge-on-read table without its log files. Raises NotLoggedError where change logs do not have all of them.

    Hudi merges log files record by record. A commit's own change log has the rows as the commit left them, so the table
    consists of the newest row of each key in the logs and of the base files' rows with other keys. The log of a commit
    that a base file already includes agrees with that file, whichever of a file group's files is the newest.
    """
    _require_unique_keys(timeline, frontier)
    limit = timeline.as_of(frontier)
    slices = timeline.slices(f"{limit}_")
    if timeline.is_archived and any(_is_unmerged(file, slices) for file in archived_logs(timeline, limit)):
        raise NotLoggedError("it has log files of archived commits")
    instants = {instant for files in slice_files(timeline, limit).values() for instant in files.log_instants()}
    # From the oldest commit on whose log files count. Commits that a base file already includes do no harm.
    commits = [
        commit
        for commit in (timeline.until(limit) if instants else ())
        if commit.is_data and commit.instant.requested >= min(instants)
    ]
    logs = chained_logs(commits, log_of(commits[0]).previous) if commits else ()
    if logs:
        # Also where the logs have no rows: a commit may have changed hidden columns alone.
        require_logged_columns(columns)
    if not any(log.rows for log in logs):
        return BaseFiles(_within(slices.values(), partitions))
    if not set(timeline.partition_fields) <= set(columns):
        raise NotLoggedError("its partitions are of a column that change logs lack")
    touched = touched_groups(commits)
    return Overlay(
        whole=_within((each for group, each in slices.items() if group not in touched), partitions),
        changed=_within((each for group, each in slices.items() if group in touched), partitions),
        logs=tuple(log_rows(timeline, log) for log in logs if log.rows),
        # A key is unique within its partition: a row that moved is in the logs as one that left and one that entered.
        identity=(KEY, *timeline.partition_fields),
    )


def _require_unique_keys(timeline: Timeline, frontier: str) -> None:
    if timeline.properties.get("hoodie.table.recordkey.fields") != KEY:
        raise NotLoggedError("its rows have keys of another writer")
    if timeline.repeats_keys(frontier):
        raise NotLoggedError("another writer may have repeated keys")


def require_logged_columns(columns: Collection[str]) -> None:
    """Raise NotLoggedError where one of these columns is in no change log: logs have the visible ones and the key."""
    if any(is_hidden(name) and name != KEY for name in columns):
        raise NotLoggedError("columns are asked for that change logs lack")


def log_rows(timeline: Timeline, log: ChangeLog) -> LogRows:
    """The rows of a change log. Raises NotLoggedError where its files do not agree with its commit."""
    columns = logged_columns(timeline, log)
    if not {KEY, WEIGHT} <= {column.name for column in spark_schema_of(columns)}:
        raise NotLoggedError("a change log has other columns than this version writes")
    return LogRows(columns, tuple(file.path for file in log.files), log.rows)


def row_key(timeline: Timeline, frontier: str) -> RowKey:
    """The key of rows as of a frontier."""
    is_stored = any(column.name == KEY for column in stored_schema(timeline, frontier))
    return RowKey(is_stored, not is_stored and timeline.repeats_keys(frontier))


def stored_schema(timeline: Timeline, frontier: str) -> Schema:
    """All columns of a table as of a frontier, including hidden ones. Raises NodeError."""
    text = timeline.schema_json(frontier)
    if text is None:
        raise NodeError(f"no schema in the history of {timeline.uri}", hint="rebuild the table")
    return schema_of(text)


def require_held(timeline: Timeline, frontier: str) -> None:
    """Raise RetryableError where a frontier has left the timeline: what changed since is unknown."""
    if not timeline.holds(frontier):
        raise RetryableError(f"commit {frontier} of {timeline.uri} is no longer on its timeline")


def require_readable(timeline: Timeline, frontier: str, groups: Collection[FileGroup] | None = None) -> None:
    """Raise RetryableError where a frontier, or a file of it in these file groups (None: all), is gone."""
    require_held(timeline, frontier)
    if not timeline.is_settled(frontier):
        raise RetryableError(f"commit {frontier} of {timeline.uri} was overtaken by a compaction")
    if lost := lost_files(timeline, frontier, groups):
        raise RetryableError(f"{len(lost)} data files of {timeline.uri} are missing, e.g. {lost[0]}")


def _within(slices: Iterable[Slice], partitions: Collection[str] | None) -> tuple[Slice, ...]:
    return tuple(each for each in slices if partitions is None or each.partition in partitions)


def _is_unmerged(file: DataFile, slices: Mapping[FileGroup, Slice]) -> bool:
    return file.group not in slices or slices[file.group].instant < file.instant
