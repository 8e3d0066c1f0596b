"""The change log of one batch into one table. Owns for which tables it pays off, and what is read for it.

Events rarely contain rows as they were in the table, so these are looked up. In a small table that takes longer than
comparing its files, as readers do where there is no log.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame

from sqlmesh_like.cdc.merge.tombstones import RETENTION_DAYS
from sqlmesh_like.hudi import change_log
from sqlmesh_like.hudi.change_log import ChangeLog
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.change_feed.logged_changes import log_of_upsert
from sqlmesh_like.spark.change_feed.mor_change_feed import MAX_PARTITIONS
from sqlmesh_like.spark.tables.hudi_table import HudiTable


def log_of_batch(rows: DataFrame, table: HudiTable, count: int) -> ChangeLog | None:
    """Write the change log of an upsert of these rows (about `count`); None where none is possible or pays off."""
    timeline = Timeline(table.uri)
    previous = timeline.frontier
    if previous is None or _may_hide_deletes(timeline, table):
        return None
    if timeline.is_cow and sum(size.bytes for size in timeline.sizes(previous).values()) < change_log.LOGGED_FROM_BYTES:
        return None
    feed = change_feed(rows.sparkSession, timeline)
    stored = feed.current(previous, _partitions(rows, table), hidden=bool(table.ordering))
    return log_of_upsert(rows, stored, timeline, table, previous, count)


def _may_hide_deletes(timeline: Timeline, table: HudiTable) -> bool:
    """Whether a log file may hold a delete that is no longer remembered: an older row that is written loses to it."""
    if timeline.is_cow or not table.ordering:
        return False
    compacted = (commit for commit in timeline.newest_first() if commit.operation == "COMPACT")
    first = "" if timeline.is_archived else timeline.commit_instants[0].requested
    since = next((commit.instant.requested for commit in compacted), first)
    return since < (datetime.now(UTC) - timedelta(days=RETENTION_DAYS)).strftime("%Y%m%d%H%M%S")


def _partitions(rows: DataFrame, table: HudiTable) -> set[str] | None:
    """Paths of the partitions of the rows; None where the table has none, or there are too many."""
    if table.partition_field is None:
        return None
    result = rows.select(table.partition_field).distinct().limit(MAX_PARTITIONS + 1).collect()
    return {f"{table.partition_field}={row[0]}" for row in result} if len(result) <= MAX_PARTITIONS else None
