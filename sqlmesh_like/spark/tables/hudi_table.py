"""Writing Hudi tables through Spark. Owns the write options and the reason for each; others decide what to write.

Every write puts this project's metadata into the same commit (keys below `sml.`), so that rows and their record can
never diverge.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import STATE_PREFIX, extra_metadata
from sqlmesh_like.hudi.file_sizing import BUCKETS
from sqlmesh_like.hudi.recovery.interrupted_restore import require_no_restore
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.commit_guard import guarded_commit
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.unfinished_table import clear_unfinished, rows_without_commit
from sqlmesh_like.hudi.writer.instant import require_clock_past
from sqlmesh_like.hudi.writer.open_commit import finish_interrupted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_log = logging.getLogger("sqlmesh_like.spark")

Operation = Literal["bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table"]

_KEY_GENERATOR = "org.apache.hudi.keygen."
_MERGE_HANDLE = "hoodie.write.merge.handle.class"
_PLAIN_MERGE = "org.apache.hudi.io.HoodieWriteMergeHandle"
"""Hudi 1.2.0's default handle builds a map of the schema's fields for each row of a file that it rewrites, which takes
twice as long as the plain one. The result is the same where the last commit wins; with an order, deletes differ."""


@dataclass(frozen=True)
class HudiTable:
    """The layout of one Hudi table. `partition_field`: a path-safe column. `ordering` empty: the last commit wins.

    `tasks`: Spark tasks that write it in parallel. `options`: the user's.
    """

    uri: str
    name: str
    key: tuple[str, ...]
    partition_field: str | None = None
    ordering: tuple[str, ...] = ()
    table_type: Literal["cow", "mor"] = "cow"
    buckets: int = 1
    tasks: int = 2
    options: Mapping[str, str] = field(default_factory=dict)


def write(
    frame: DataFrame,
    table: HudiTable,
    operation: Operation,
    metadata: Mapping[str, str],
    options: Mapping[str, str] | None = None,
) -> None:
    """Commit the rows of `frame` and `metadata` (keys without prefix) to the table in one Hudi commit.

    Removes the remains of an interrupted creation first. Raises NodeError where the table's properties are broken
    although it has commits, it has rows but no commit, a restore of it did not complete, or the clock was set back, and
    RetryableError where the call's locks are lost.
    """
    if clear_unfinished(table.uri):
        _log.warning("warning: %s was never finished, a process died while it was made: it is made again", table.uri)
    elif path := rows_without_commit(table.uri):
        hint = "restore .hoodie/timeline of the table, or move its folder away to have it made again"
        raise NodeError(f"{table.uri} has data files, e.g. {path}, and no commit", hint=hint)
    require_no_restore(table.uri)
    finish_interrupted(table.uri)
    require_clock_past(Timeline(table.uri))
    chosen = {**write_options(table), **table.options, **(options or {}), **extra_metadata(metadata)}
    chosen["hoodie.datasource.write.operation"] = operation
    chosen[BUCKETS] = str(table.buckets)  # overrides the user's option: the table was created with this number
    with guarded_commit(table.uri, frame.sparkSession.sparkContext.cancelAllJobs):
        fault_point("spark.write.begin")
        without_small_integers(frame).write.format("hudi").options(**chosen).mode("append").save(table.uri)
    fault_point("spark.write.end")


def without_small_integers(frame: DataFrame) -> DataFrame:
    """Cast small integers to int, also those within nested values, as tables have them: Hudi's writer refuses them.

    Measured with Hudi 1.2.0: `Unsupported type: ByteType`.
    """
    from pyspark.sql import functions as F

    wider = {field.name: _without_small_integers(field.dataType) for field in frame.schema.fields}
    cast = {f.name: F.col(f"`{f.name}`").cast(wider[f.name]) for f in frame.schema if wider[f.name] != f.dataType}
    return frame.withColumns(cast) if cast else frame


def _without_small_integers(type_: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, ByteType, IntegerType, MapType, ShortType, StructField, StructType

    wider = _without_small_integers
    match type_:
        case ByteType() | ShortType():
            return IntegerType()
        case ArrayType():
            return ArrayType(wider(type_.elementType), type_.containsNull)
        case MapType():
            return MapType(wider(type_.keyType), wider(type_.valueType), type_.valueContainsNull)
        case StructType():
            return StructType([StructField(f.name, wider(f.dataType), f.nullable, f.metadata) for f in type_.fields])
    return type_


def overwrite_partitions(frame: DataFrame, table: HudiTable, paths: list[str], metadata: Mapping[str, str]) -> None:
    """Replace exactly these partitions by the rows of `frame` in one commit; partitions without rows become empty."""
    static = {
        "hoodie.static.overwrite.partition.paths": ",".join(paths),
        "hoodie.datasource.overwrite.mode": "STATIC",
    }
    write(frame, table, "insert_overwrite", metadata, static)


def write_options(table: HudiTable) -> dict[str, str]:
    """Hudi options of a table, without the operation."""
    options = {
        "hoodie.table.name": table.name,
        "hoodie.datasource.write.table.name": table.name,
        "hoodie.datasource.write.recordkey.field": ",".join(table.key),
        "hoodie.datasource.write.partitionpath.field": table.partition_field or "",
        "hoodie.datasource.write.keygenerator.class": _KEY_GENERATOR + _key_generator(table),
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ" if table.table_type == "mor" else "COPY_ON_WRITE",
        # A bucket lookup costs nothing, so a small commit takes a quarter of the time that the default index takes. The
        # number of buckets must never change on an existing table (a higher one duplicates keys).
        "hoodie.index.type": "BUCKET",
        BUCKETS: str(table.buckets),
        "hoodie.metadata.enable": "false",
        # Hudi's default, gzip, takes half of the time of writing a file, which does not become smaller.
        "hoodie.parquet.compression.codec": "zstd",
        # A bloom filter makes a file of one row 435 kB large, and the bucket index never reads it.
        "hoodie.parquet.bloom.filter.enabled": "false",
        # bulk_insert writes a bloom filter regardless: with these options it is small and cheap.
        "hoodie.index.bloom.num_entries": "1",
        "hoodie.bloom.index.filter.type": "SIMPLE",
        "hoodie.index.bloom.fpp": "0.5",
        # Times of the default, LOCAL, go backwards when daylight saving time ends.
        "hoodie.table.timeline.timezone": "UTC",
        # Consumers read changes from the history: only this project's retention removes it.
        "hoodie.clean.automatic": "false",
        "hoodie.archive.automatic": "false",
        "hoodie.datasource.write.commitmeta.key.prefix": STATE_PREFIX,
        "hoodie.write.set.null.for.missing.columns": "true",
        "hoodie.datasource.write.row.writer.enable": "true",
        "hoodie.embed.timeline.server": "false",
        "hoodie.upsert.shuffle.parallelism": str(table.tasks),
        "hoodie.insert.shuffle.parallelism": str(table.tasks),
        "hoodie.bulkinsert.shuffle.parallelism": str(table.tasks),
    }
    if table.table_type == "mor":
        # By default, every fifth commit compacts and rewrites all that the five touched. Readers use change logs
        # instead of log files, so a compaction is needed less often.
        options["hoodie.compact.inline.max.delta.commits"] = "20"
    if folder(table.uri).is_local:
        # The default starts a task per written partition, which takes longer than listing its folder of markers.
        options["hoodie.markers.delete.parallelism"] = "2"
    if table.ordering:
        options["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
        options["hoodie.table.ordering.fields"] = ",".join(table.ordering)
        options["hoodie.datasource.write.precombine.field"] = ",".join(table.ordering)
    else:
        # A recomputed row may have a lower value in any column, so the last commit must win.
        options["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
        if table.table_type == "cow":
            options[_MERGE_HANDLE] = _PLAIN_MERGE
    return options


def _key_generator(table: HudiTable) -> str:
    if not table.partition_field:
        return "NonpartitionedKeyGenerator"
    return "SimpleKeyGenerator" if len(table.key) == 1 else "ComplexKeyGenerator"
