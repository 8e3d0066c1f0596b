"""The change of a table between two frontiers: the logs of its commits, or a comparison of what they wrote.

Hudi's incremental and CDC-format reads are not used: they return late rows that lost against stored ones, lose
decimals, and miss commits that were requested earlier and completed later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlmesh_like.hudi.change_log import NotLoggedError, logs_between
from sqlmesh_like.hudi.commits import Commit, FileGroup, touched_groups
from sqlmesh_like.hudi.reading.rows_plan import (
    BaseFiles,
    LogRows,
    RowKey,
    SliceMerge,
    Source,
    log_rows,
    require_held,
    require_logged_columns,
    require_readable,
    row_key,
)
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, PARTITION_PATH, RECORD_KEY, SEQUENCE, WEIGHT

RECORD = (RECORD_KEY, PARTITION_PATH)
"""Columns that identify a record: its key is unique within its partition (tables without a global index)."""
ROW = (RECORD_KEY, SEQUENCE)
"""Columns that identify a row as a commit wrote it. The number is unique in its commit, whose instant it starts with
(Hudi's technical specification, on meta fields); copies of a row keep it.
"""
_NUMBERED_MERGES = ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
"""Merge modes in which one of two rows of a key wins entirely, with the number that its writer gave it."""
_MERGE_INTO = "_hoodie.spark.sql.merge.into"
"""Metadata key of commits of MERGE INTO, which may write only the updated columns."""
_OF_KEY = f"OVER (PARTITION BY {KEY})"
KIND_OF_CHANGE = (
    f"CASE WHEN min({WEIGHT}) {_OF_KEY} < 0 AND max({WEIGHT}) {_OF_KEY} > 0"
    f" THEN CASE WHEN {WEIGHT} < 0 THEN 'update_before' ELSE 'update_after' END"
    f" WHEN {WEIGHT} < 0 THEN 'delete' ELSE 'insert' END"
)
"""What users are told of a netted signed row, as SQL of both engines: a key that leaves and enters is an update."""


@dataclass(frozen=True)
class LoggedChange:
    """The change is the rows of these logs, which have their signs."""

    logs: tuple[LogRows, ...]


@dataclass(frozen=True)
class Comparison:
    """The change is what differs between the file groups that commits touched, at `start` (`old`) and `end` (`new`).

    Sign +1: rows of `new` with a commit time after `since`; rows that a commit copied unchanged keep theirs. Sign −1:
    rows of `old` whose `ROW` is not in `new`. In the file groups `superseded` that is the same as: whose `RECORD` is
    among the rows with +1, which are few. `since` None: numbers and times of rows do not show what changed; all of
    `new` has +1, all of `old` −1, and equal rows cancel out.

    A row that was rewritten with the same content has both signs: consumers net by the columns that they use.

    `key`: of both sides. It is that of `end`, because readers know the rows that stay by their key from then on.
    `most_left`: the most rows that can have −1; None where commits do not show it. `why`: what rules out logs.
    """

    old: Source
    new: Source
    key: RowKey
    since: str | None
    superseded: frozenset[FileGroup]
    most_left: int | None
    why: str

    @property
    def is_superseded(self) -> bool:
        """Whether all of `old` is in the file groups `superseded`."""
        return isinstance(self.old, BaseFiles) and all(each.group in self.superseded for each in self.old.slices)


def plan_change(timeline: Timeline, start: str, end: str, columns: Collection[str]) -> LoggedChange | Comparison:
    """Plan a read of the change of these columns. Raises RetryableError where a frontier or files of it are gone."""
    for frontier in (start, end):
        require_held(timeline, frontier)
    try:
        return plan_logs(timeline, start, end, columns)
    except NotLoggedError as error:
        return plan_comparison(timeline, start, end, str(error))


def plan_logs(timeline: Timeline, start: str, end: str, columns: Collection[str]) -> LoggedChange:
    """The change by the logs of its commits. Raises NotLoggedError where these do not have all of it."""
    logs = [log for log in logs_between(timeline, start, end) if log.rows]
    if logs:
        require_logged_columns(columns)
    alike: dict[str, LogRows] = {}
    for rows in (log_rows(timeline, log) for log in logs):
        before = alike.get(rows.columns, LogRows(rows.columns, (), 0))
        alike[rows.columns] = LogRows(rows.columns, (*before.paths, *rows.paths), before.rows + rows.rows)
    return LoggedChange(tuple(alike.values()))


def plan_comparison(timeline: Timeline, start: str, end: str, why: str = "") -> Comparison:
    """The change by comparing what its commits touched. Raises RetryableError where files of it are gone."""
    commits = timeline.between(start, end)  # services too: they move rows to other files
    touched = touched_groups(commits)
    for frontier in (start, end):
        require_readable(timeline, frontier, touched)
    old, new = (_source_at(timeline, frontier, touched, why) for frontier in (start, end))
    return Comparison(
        old=old,
        new=new,
        key=row_key(timeline, end),
        since=_since(timeline, start, commits),
        superseded=_superseded_groups(commits) if timeline.is_cow else frozenset(),
        most_left=_most_left(commits),
        why=why,
    )


def _source_at(timeline: Timeline, frontier: str, touched: frozenset[FileGroup], why: str) -> Source:
    """What the file groups held at a frontier.

    A replaced group (clustering, `insert_overwrite`) is in the old files and no longer in the new ones, a new one the
    other way round, so that both are compared without a rule of their own.
    """
    if not timeline.is_cow:
        partitions = frozenset(partition for partition, _ in touched)
        return SliceMerge(timeline.as_of(frontier), why, partitions, touched)
    return BaseFiles(tuple(each for group, each in timeline.slices(frontier).items() if group in touched))


def _since(timeline: Timeline, start: str, commits: Iterable[Commit]) -> str | None:
    """The commit time after which rows of the new files entered. It is that of the old files as they are read."""
    if timeline.is_cow:
        return timeline.snapshot_instant(start)  # a rewrite of the same rows gave them its own time
    # Compaction and clustering keep a row's number and commit time. As-of reads ignore later rewrites of the same rows.
    return start.split("_")[0] if _numbers_rows(timeline, commits) else None


def _numbers_rows(timeline: Timeline, commits: Iterable[Commit]) -> bool:
    """Whether every changed row has a new number; other merges may combine two rows under the number of one."""
    is_partial = bool(timeline.properties.get("hoodie.table.partial.update.mode")) or any(
        key.startswith(_MERGE_INTO) for commit in commits for key in commit.extra
    )
    return timeline.properties.get("hoodie.record.merge.mode") in _NUMBERED_MERGES and not is_partial


def _superseded_groups(commits: Collection[Commit]) -> frozenset[FileGroup]:
    """File groups of base files that no row can have left unless a newer one of its key replaced it.

    Only upserts promise that: plain inserts may repeat a stored key, and replaced groups lose all rows. A row that
    moves to another partition is deleted where it was.
    """
    if any(commit.operation != "UPSERT" or commit.replaced for commit in commits):
        return frozenset()
    lossy = {(write.partition, write.file_id) for commit in commits for write in commit.writes if write.deletes}
    return touched_groups(commits) - lossy


def _most_left(commits: Collection[Commit]) -> int | None:
    changes = [commit for commit in commits if commit.is_data]  # services remove no row
    if any(commit.replaced or commit.operation != "UPSERT" for commit in changes):
        return None
    return sum(write.updates + write.deletes for commit in changes for write in commit.writes)
