"""Actions, or all rows of a table → one Hudi commit. Owns checks of all rows, and how a table is replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.analyze.spark_types.type_names import stored_type
from sqlmesh_like.delta.actions import BEFORE, COPIES, actions_by_group, require_unique
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.hudi.change_log import ChangeLog
from sqlmesh_like.hudi.recovery.table_swap import replace_table
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer import kept_layout
from sqlmesh_like.hudi.writer.merge_mode import merges_as_declared
from sqlmesh_like.names import IS_DELETED, KEY, PARTITION, WEIGHT, Column, Schema, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.spark.change_feed.logged_changes import log_of_images, log_of_upsert
from sqlmesh_like.spark.frames.partition_paths import partition_path
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from sqlmesh_like.spark.writer.local_commit import commit_locally

_NETTED = "_sml_netted"


@dataclass(frozen=True)
class TableSpec:
    """The table of a model. `table` has the key `_sml_key` and, where partitioned, the partition `_sml_partition`.

    `commits_locally`: commit upserts without Hudi's writer where possible.
    """

    table: HudiTable
    partition_by: tuple[str, ...]
    unique_key: tuple[str, ...]
    state: TableState
    commits_locally: bool = False

    def prepared(self, frame: DataFrame) -> DataFrame:
        """Add the derived partition column, if the table is partitioned."""
        if self.partition_by:
            frame = frame.withColumn(PARTITION, partition_path(self.partition_by))
        return frame


@dataclass(frozen=True)
class WriteCounts:
    upserts: int
    deletes: int


def net_rows(signed: DataFrame) -> DataFrame:
    """Net signed rows to at most one action per key, with the columns that `delta.actions` describes."""
    signed.createOrReplaceTempView(_NETTED)
    names = tuple(name for name in signed.columns if name != WEIGHT)
    return signed.sparkSession.sql(actions_by_group(_NETTED, names, (KEY,)).sql(SPARK))


def commit_actions(
    actions: DataFrame, counts: WriteCounts, sink: TableSpec, metadata: Mapping[str, str], stored: DataFrame | None
) -> None:
    """Commit the actions as one upsert, with its change log.

    `stored`: the table's rows; None where the actions' old rows equal them in every bit.
    """
    rows = actions.drop(COPIES, BEFORE)
    if sink.commits_locally and commit_locally(rows, sink.table, metadata, counts.upserts + counts.deletes):
        return
    upsert_rows(rows, sink, metadata, log_changes(actions, counts, sink, stored))


def upsert_rows(rows: DataFrame, sink: TableSpec, metadata: Mapping[str, str], log: ChangeLog | None = None) -> None:
    """Commit the rows with Hudi's writer."""
    hudi_table.write(rows, sink.table, "upsert", {**metadata, **(log.metadata if log else {})})


def merge_nothing(frame: DataFrame, sink: TableSpec, metadata: Mapping[str, str]) -> None:
    """Commit only metadata to a table, and the columns of `frame` that it does not have yet."""
    stored = {column.name for column in sink.state.stored or ()}
    is_wider = any(column.name not in stored for column in visible(frame_schema(frame)))
    if sink.commits_locally and not is_wider and commit_locally(None, sink.table, metadata, 0):
        return
    log = ChangeLog(sink.state.frontier) if sink.state.frontier else None
    upsert_rows(_no_actions(frame, sink).drop(COPIES), sink, metadata, log)


def log_changes(actions: DataFrame, counts: WriteCounts, sink: TableSpec, stored: DataFrame | None) -> ChangeLog | None:
    """Write the change log of actions (`one_action_a_key`); None where the table's future content is not certain.

    `stored`: the table's rows; None where the actions' old rows equal them in every bit.
    """
    timeline, previous, count = Timeline(sink.table.uri), sink.state.frontier, counts.upserts + counts.deletes
    if previous is None or not count:
        return ChangeLog(previous) if previous else None
    if stored is not None:
        plain = actions.drop(COPIES, BEFORE)
        return log_of_upsert(plain, stored, timeline, sink.table, previous, count)
    types = {column.name: column.type for column in sink.state.stored or ()}
    is_alike = all(types.get(column.name) == stored_type(column.type) for column in visible(frame_schema(actions)))
    if not is_alike or not merges_as_declared(timeline, sink.table.ordering, sink.table.options):
        return None
    return log_of_images(actions, BEFORE, timeline, previous, count)


def _no_actions(frame: DataFrame, sink: TableSpec) -> DataFrame:
    return sink.prepared(frame).withColumn(IS_DELETED, F.lit(False)).withColumn(COPIES, F.lit(0)).limit(0)


def check_rows(frame: DataFrame, sink: TableSpec) -> int:
    """Check all rows of a table and count them. Raises NodeError where the declared key is NULL or repeats."""
    keys = list(sink.unique_key)
    if not keys:
        return frame.count()
    grouped = frame.groupBy(*[F.col(f"`{name}`") for name in keys]).count()
    row = grouped.agg(F.sum("count"), F.max("count"), _null_keys(sink.unique_key)).collect()[0]
    require_unique(sink.table.name, sink.unique_key, copies=row[1] or 0, nulls=row[2] or 0)
    return int(row[0] or 0)


def rebuild(frame: DataFrame, sink: TableSpec, metadata: Mapping[str, str]) -> None:
    """Replace all rows of the table by those of the frame, atomically for readers."""
    rows = sink.prepared(frame).withColumn(IS_DELETED, F.lit(False))
    if sink.state.kind == "missing":
        hudi_table.write(rows, sink.table, "bulk_insert", metadata)
        return
    if keeps_layout(sink, rows):
        hudi_table.write(rows, sink.table, "insert_overwrite_table", metadata)
        return

    def build(beside: str) -> None:
        hudi_table.write(rows, replace(sink.table, uri=beside), "bulk_insert", metadata)

    replace_table(sink.table.uri, sink.table.name, build)


def overwrite(frame: DataFrame, sink: TableSpec, paths: Sequence[str], metadata: Mapping[str, str]) -> None:
    """Replace the partitions at these paths by the rows of the frame."""
    rows = sink.prepared(frame).withColumn(IS_DELETED, F.lit(False))
    hudi_table.overwrite_partitions(rows, sink.table, list(paths), metadata)


def frame_schema(frame: DataFrame) -> Schema:
    return tuple(Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)


def have_same_columns(one: DataFrame, other: DataFrame) -> bool:
    """Whether both frames have the same visible columns, with the same types in the same order."""
    return visible(frame_schema(one)) == visible(frame_schema(other))


def keeps_layout(sink: TableSpec, rows: DataFrame) -> bool:
    """Whether columns, types, partitions and buckets are those of the table, so that it can be replaced in place."""
    table = sink.table
    return kept_layout.keeps_layout(sink.state, frame_schema(rows), sink.partition_by, table.buckets, table.table_type)


def _null_keys(names: Sequence[str]) -> SparkColumn:
    if not names:
        return F.lit(0)
    condition = F.lit(False)
    for name in names:
        condition = condition | F.col(f"`{name}`").isNull()
    return F.count_if(condition)
