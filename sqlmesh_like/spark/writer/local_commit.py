"""Rows that Spark computed, committed without Hudi's writer. Owns when that is done, and how the rows are passed.

Hudi's writer creates Java objects for each row of a file that it rewrites, and starts several jobs for the smallest
commit; `hudi.writer` does neither. It gets a few rows as Arrow batches, more of them through files on this machine.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sqlmesh_like.hudi import change_log
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.change_log import ChangeLog
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import Schema
from sqlmesh_like.spark.tables.hudi_table import HudiTable, without_small_integers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger(__name__)
MOST_ROWS = 500_000
"""More rows are written by Hudi, in parallel tasks: here, all rows of a commit are in memory."""
MOST_BYTES = 256 * 1024**2
"""The same limit in bytes of Parquet before compression, because a few rows can be wide."""
_ROWS_OF_ONE_TASK = 20_000
_MOST_COLLECTED_BYTES = 32 * 1024**2
"""Rows that Spark estimates to be larger are fetched through files."""


def commit_locally(frame: DataFrame | None, table: HudiTable, metadata: Mapping[str, str], count: int) -> bool:
    """Commit an upsert of about `count` rows with `metadata` (keys without prefix); False where Hudi must write it.

    Grain of `frame`: key × partition; `_hoodie_is_deleted` marks deletes. None: a commit of metadata only.
    """
    if count > MOST_ROWS:
        return False
    timeline = settled_timeline(table.uri)
    reason = unsupported_reason(timeline, table.ordering, table.partition_field, table.options)
    if reason is not None or timeline.frontier is None:
        _LOG.debug("%s is written by Hudi: %s", table.uri, reason)
        return False
    rows = None if frame is None else _fetch_rows(frame, count)
    if frame is not None and rows is None:
        _LOG.debug("%s is written by Hudi: more than %d bytes", table.uri, MOST_BYTES)
        return False
    try:
        commit_rows(timeline, rows, table, metadata)
    except UnsupportedRowsError as error:
        _LOG.debug("%s is written by Hudi: %s", table.uri, error)
        return False
    return True


def commit_rows(
    timeline: Timeline,
    rows: pa.Table | None,
    table: HudiTable,
    metadata: Mapping[str, str],
    avro: str | None = None,
    most_bytes: int | None = None,
) -> None:
    """Commit an upsert to a table with commits. Raises UnsupportedRowsError where Hudi must write the rows.

    `avro`: the schema that the table grows to with these rows; None: it stays the same. `most_bytes`: see `Upsert`.
    """
    assert timeline.frontier is not None
    if rows is None:
        metadata = {**metadata, **ChangeLog(timeline.frontier).metadata}
    columns = None if rows is None else _logged_columns(timeline, avro)
    upsert(
        Upsert(
            timeline, timeline.frontier, rows, table.buckets, metadata, table.partition_field, table.ordering,
            columns, avro, grows=avro is not None, most_bytes=most_bytes,
        )
    )  # fmt: skip


def _fetch_rows(frame: DataFrame, count: int) -> pa.Table | None:
    """The rows of a frame, about `count`; None if they have more than `MOST_BYTES`."""
    frame = without_small_integers(frame)
    if count <= _ROWS_OF_ONE_TASK and _estimated_bytes(frame) <= _MOST_COLLECTED_BYTES:
        batches = frame._collect_as_arrow()
        if batches:  # without rows there is no batch that would state the columns
            return pa.Table.from_batches(batches)
    return _fetch_through_files(frame, count)


def _estimated_bytes(frame: DataFrame) -> int:
    """Spark's estimate. It knows the size of rows in its cache; of files it takes their size on disk."""
    return int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


def _fetch_through_files(frame: DataFrame, count: int) -> pa.Table | None:
    """Fetch the rows through files, whose footers state their exact size; None if they have more than `MOST_BYTES`."""
    import pyarrow.dataset as pads

    with tempfile.TemporaryDirectory(prefix="sml-") as folder:
        path = str(Path(folder, "rows"))
        staged = frame.coalesce(1) if count <= _ROWS_OF_ONE_TASK else frame
        staged.write.option("compression", "none").parquet(path)
        files = pads.dataset(path, format="parquet")
        groups = (group for fragment in files.get_fragments() for group in fragment.row_groups)
        return files.to_table() if sum(group.total_byte_size for group in groups) <= MOST_BYTES else None


def _logged_columns(timeline: Timeline, grown: str | None) -> Schema | None:
    """The table's next columns, for a change log; None where the table is too small for one, or a type changes."""
    assert timeline.frontier is not None
    avro = timeline.schema_json(timeline.frontier)
    size = sum(each.bytes for each in timeline.sizes(timeline.frontier).values())
    if not avro or size < change_log.LOGGED_FROM_BYTES:
        return None
    columns = schema_of(grown or avro)
    return columns if set(schema_of(avro)) <= set(columns) else None
