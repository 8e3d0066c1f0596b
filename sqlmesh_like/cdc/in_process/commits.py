"""Rows of this process as commits of Hudi tables, and back. Owns their types in Arrow; `hudi.writer` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import Float32, NotProvenError, Rewritten, Value, places
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.unfinished_table import rows_without_commit
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, file_schema
from sqlmesh_like.hudi.writer.file_merge import conform_piece
from sqlmesh_like.hudi.writer.new_table import NewTable, table_schema
from sqlmesh_like.hudi.writer.open_commit import settled_timeline
from sqlmesh_like.hudi.writer.schema_growth import grown_schema
from sqlmesh_like.hudi.writer.table_support import unsupported_option, unsupported_reason
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, Schema

if TYPE_CHECKING:
    from sqlmesh_like.spark.tables.hudi_table import HudiTable


_MOST_ROWS, _MOST_BYTES = 20_000, 32 * 1024**2
"""A larger table is read by Spark."""


def without_remains(uri: str) -> Timeline:
    """The timeline of a table, without a commit that a process left behind, so that its rows can be looked up."""
    if not Timeline(uri).exists:
        recover(uri)
    return settled_timeline(uri)


def commit_frame(
    frame: RowFrame, table: HudiTable, metadata: Mapping[str, str], columns: Schema, most_bytes: int | None = None
) -> None:
    """Upsert the rows (grain: key × partition) in one commit. Raises NotProvenError where Spark must write them.

    `columns`: those of the rows, with which the table is created if it has no commit, and to which it grows if it lacks
    some. `most_bytes`: of its files that may be rewritten here.
    """
    from sqlmesh_like.spark.writer.local_commit import commit_rows

    timeline = without_remains(table.uri)
    try:
        if timeline.frontier is None:
            _create(frame, table, metadata, columns)
            return
        reason = unsupported_reason(timeline, table.ordering, table.partition_field, table.options)
        avro = None if reason else timeline.schema_json(timeline.frontier)
        if avro is None:
            raise UnsupportedRowsError(reason or "its commits do not say its columns")
        grown = grown_schema(avro, columns)
        is_grown = schema_of(grown) != schema_of(avro)
        rows = _arrow(frame, file_schema(grown if is_grown else avro))
        commit_rows(timeline, rows, table, metadata, grown if is_grown else None, most_bytes)
    except UnsupportedRowsError as error:
        raise NotProvenError(str(error)) from error


def stored_rows(timeline: Timeline) -> RowFrame:
    """All rows of a table with commits (grain: row), hidden columns included, but for Hudi's own.

    Raises NotProvenError for large tables, and for values that Python cannot hold.
    """
    frontier = timeline.frontier
    assert frontier is not None
    large = NotProvenError(f"{timeline.uri.rpartition('/')[2]} is large, and all of its rows are read")
    sizes = timeline.sizes(frontier).values()
    if sum(size.bytes for size in sizes) > _MOST_BYTES or sum(size.rows or 0 for size in sizes) > _MOST_ROWS:
        raise large
    if not timeline.is_cow or (avro := timeline.schema_json(frontier)) is None:
        raise NotProvenError("a table that this process cannot read")
    try:
        schema = file_schema(avro)
        files = [
            conform_piece(pq.read_table(timeline.folder.parquet_source(each.path)), schema)
            for each in timeline.slices(frontier).values()
        ]
        rows = pa.concat_tables([schema.empty_table(), *files])
        if rows.num_rows > _MOST_ROWS:
            raise large
        shown = [name for name in schema.names if name not in HUDI_COLUMNS]
        columns = [column_values(rows.column(name)) for name in shown]
    except (UnsupportedRowsError, ValueError, OverflowError) as error:
        raise NotProvenError(f"a stored row: {error}") from error
    return RowFrame(shown, list(zip(*columns, strict=True)))


def column_values(column: pa.ChunkedArray) -> list[Value]:
    """The values of a column of a file, but for types that only the file's schema tells."""
    values: list[Value] = column.to_pylist()
    is_float = pa.types.is_float32(column.type)
    return [None if value is None else Float32(value) for value in values] if is_float else values


def _create(frame: RowFrame, table: HudiTable, metadata: Mapping[str, str], columns: Schema) -> None:
    reason = "it is merge-on-read" if table.table_type == "mor" else unsupported_option(table.options)
    if reason or rows_without_commit(table.uri):
        raise UnsupportedRowsError(reason or "it has files and no commit")
    new = NewTable(table.uri, table.name, columns, table.partition_field, table.buckets, table.ordering)
    # Rows that are inserted and deleted before there is a table: its first commit inserts whatever it is given.
    rows = _arrow(frame.where(f"not {IS_DELETED}"), file_schema(table_schema(new)))
    new.write(rows.drop_columns([IS_DELETED]), metadata)


def _arrow(frame: RowFrame, schema: pa.Schema) -> pa.Table:
    fields = [field for field in schema if field.name not in HUDI_COLUMNS]
    known = places(frame.columns)
    if set(known) != {field.name.lower() for field in fields}:
        raise NotProvenError("a table with other columns")
    columns = []
    for field in fields:
        values = [row[known[field.name.lower()]] for row in frame.rows]
        if any(isinstance(value, Rewritten) for value in values):
            raise NotProvenError("the text of a number with a fraction in JSON")
        try:
            columns.append(pa.array(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise NotProvenError(f"{field.name} as {field.type}: {error}") from None
    return pa.table(columns, schema=pa.schema(fields))
