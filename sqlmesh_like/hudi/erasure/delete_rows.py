"""Rows deleted for good. Owns the commit, which has no change log: that would contain the deleted rows."""

from __future__ import annotations

import pyarrow as pa

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.bucket_count import BUCKETS_KEY, CARRIED, known_buckets
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, file_schema
from sqlmesh_like.hudi.writer.file_merge import conform_piece
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, upsert
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED
from sqlmesh_like.plan.history import RECORD_KEY

_CARRIED = (*CARRIED, BUCKETS_KEY, RECORD_KEY)
"""Metadata that the next writer looks for in the newest commit."""


def delete_rows(uri: str, match: RowMatch, carried: tuple[str, ...] = ()) -> int:
    """Delete the matching rows in one commit and return their number; without rows there is no commit.

    `carried`: keys of metadata, beside those of every table, that the commit repeats. The caller holds the lake's
    locks. Raises NodeError where the table cannot be written here.
    """
    timeline = settled_timeline(uri)
    if timeline.frontier is None:
        return 0
    avro, reason = timeline.schema_json(timeline.frontier), _reason(timeline)
    if reason is not None or avro is None:
        raise NodeError(f"no row of {uri} can be deleted: {reason}")
    try:
        rows = _rows(timeline, match, file_schema(avro))
        if rows.num_rows:
            values = {name: timeline.extra(STATE_PREFIX + name) for name in (*_CARRIED, *carried)}
            metadata = {name: value for name, value in values.items() if value is not None}
            buckets = known_buckets(timeline) or 1
            # Without an order: a delete wins whatever row it meets.
            upsert(Upsert(timeline, timeline.frontier, rows, buckets, metadata, _partition(timeline)))
    except UnsupportedRowsError as error:
        raise NodeError(f"no row of {uri} can be deleted: it has {error}") from error
    fault_point("erasure.rows")
    return int(rows.num_rows)


def undeletable_reason(timeline: Timeline) -> str | None:
    """Why no row of a table can be deleted here; None where rows can be. A write that was cut short is not one."""
    return None if timeline.unfinished else _reason(timeline)


def _reason(timeline: Timeline) -> str | None:
    if timeline.frontier is None:
        return None
    if timeline.schema_json(timeline.frontier) is None:
        return "its commits do not say its columns"
    ordering = timeline.properties.get("hoodie.table.ordering.fields", "")
    names = tuple(name for name in ordering.split(",") if name)
    return unsupported_reason(timeline, names, _partition(timeline), {})


def _partition(timeline: Timeline) -> str | None:
    return next(iter(timeline.partition_fields), None)


def _rows(timeline: Timeline, match: RowMatch, schema: pa.Schema) -> pa.Table:
    """The matching rows as deletes, with the table's columns."""
    assert timeline.frontier is not None
    wanted = pa.schema([field for field in schema if field.name not in HUDI_COLUMNS])
    parts = [wanted.empty_table()]
    for each in timeline.slices(timeline.frontier).values():
        rows = match.rows_of(timeline.folder.parquet_source(each.path))
        if rows is not None and rows.num_rows:
            parts.append(conform_piece(rows, schema).select(wanted.names))
    rows = pa.concat_tables(parts)
    at = rows.schema.get_field_index(IS_DELETED)
    return rows.set_column(at, rows.schema.field(at), pa.repeat(True, rows.num_rows))
