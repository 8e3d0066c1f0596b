"""Writing Hudi tables through Spark. Owns the write options and the reason for each; others decide what to write.

Every write carries our metadata in the same commit (keys below `sml.`), so that rows and the record of what they mean
can never diverge.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, ShortType

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.file_sizing import BUCKETS
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.unfinished_table import clear_unfinished, rows_without_commit

_log = logging.getLogger("sqlmesh_like.spark")

Operation = Literal["bulk_insert", "upsert", "insert_overwrite", "insert_overwrite_table"]

_KEY_GENERATOR = "org.apache.hudi.keygen."
_MERGE_HANDLE = "hoodie.write.merge.handle.class"
_PLAIN_MERGE = "org.apache.hudi.io.HoodieWriteMergeHandle"
"""Hudi 1.2.0's default handle builds a map of the schema's fields for each row of a file that it rewrites: twice the
time of the plain one, which leaves the same rows where the last commit wins. By an order it deletes other rows."""


@dataclass(frozen=True)
class HudiTable:
    """How one Hudi table is laid out. `partition_field` is a path-safe column; `ordering` empty means commit order.

    `tasks` is how many write it at once; `options` are the user's.
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

    Raises NodeError where the table's properties are broken, though it has commits, or it has rows and no commit.
    """
    if clear_unfinished(table.uri):
        _log.warning("warning: %s was never finished, a process died while it was made: it is made again", table.uri)
    elif path := rows_without_commit(table.uri):
        hint = "restore .hoodie/timeline of the table, or move its folder away to have it made again"
        raise NodeError(f"{table.uri} has data files, e.g. {path}, and no commit", hint=hint)
    tagged = {f"{STATE_PREFIX}{key}": value for key, value in metadata.items()}
    chosen = {**write_options(table), **table.options, **(options or {}), **tagged}
    chosen["hoodie.datasource.write.operation"] = operation
    chosen[BUCKETS] = str(table.buckets)  # whatever the user's options say now: the table was made with these
    fault_point("spark.write.begin")
    without_small_integers(frame).write.format("hudi").options(**chosen).mode("append").save(table.uri)
    fault_point("spark.write.end")


def without_small_integers(frame: DataFrame) -> DataFrame:
    """Small integers as int, which is how a table shows them: Hudi 1.2.0's row writer fails on a ByteType."""
    small = [f.name for f in frame.schema.fields if isinstance(f.dataType, ByteType | ShortType)]
    return frame.withColumns({name: F.col(f"`{name}`").cast("int") for name in small}) if small else frame


def overwrite_partitions(frame: DataFrame, table: HudiTable, paths: list[str], metadata: Mapping[str, str]) -> None:
    """Replace exactly these partitions by the rows of `frame` in one commit; those left without rows are emptied."""
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
        # One bucket index lookup costs nothing and a small commit takes a quarter of the default's time; the number of
        # buckets must never change on a living table (a raised one duplicates keys).
        "hoodie.index.type": "BUCKET",
        BUCKETS: str(table.buckets),
        "hoodie.metadata.enable": "false",
        # Hudi's default, gzip, takes half of the time of writing a file, and makes no smaller one.
        "hoodie.parquet.compression.codec": "zstd",
        # A bloom filter makes a 435 kB file of a one-row one and the bucket index never reads it.
        "hoodie.parquet.bloom.filter.enabled": "false",
        # bulk_insert writes one whatever is asked: let it be of one entry, and quickly filled.
        "hoodie.index.bloom.num_entries": "1",
        "hoodie.bloom.index.filter.type": "SIMPLE",
        "hoodie.index.bloom.fpp": "0.5",
        # The default, LOCAL, goes backwards when clocks change.
        "hoodie.table.timeline.timezone": "UTC",
        # History is what consumers read changes from: it is removed only by our own retention.
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
        # Hudi compacts within every fifth commit, which then rewrites all that the five touched. Change logs spare
        # readers the log files, so it may happen more seldom.
        options["hoodie.compact.inline.max.delta.commits"] = "20"
    if folder(table.uri).is_local:
        # A task for each partition that was written takes longer than the folders of markers it looks into.
        options["hoodie.markers.delete.parallelism"] = "2"
    if table.ordering:
        options["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
        options["hoodie.table.ordering.fields"] = ",".join(table.ordering)
        options["hoodie.datasource.write.precombine.field"] = ",".join(table.ordering)
    else:
        # A derived row that is recomputed may well have a lower value in any column: the last commit wins.
        options["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
        if table.table_type == "cow":
            options[_MERGE_HANDLE] = _PLAIN_MERGE
    return options


def _key_generator(table: HudiTable) -> str:
    if not table.partition_field:
        return "NonpartitionedKeyGenerator"
    return "SimpleKeyGenerator" if len(table.key) == 1 else "ComplexKeyGenerator"
