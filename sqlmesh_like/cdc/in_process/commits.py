"""Rows of this process as commits of Hudi tables. Owns their types in Arrow; `hudi.writer` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Rewritten, places
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.unfinished_table import rows_without_commit
from sqlmesh_like.hudi.writer.arrow_schema import file_schema
from sqlmesh_like.hudi.writer.file_merge import UnsupportedRowsError
from sqlmesh_like.hudi.writer.instant import settled_timeline
from sqlmesh_like.hudi.writer.new_table import NewTable, table_schema
from sqlmesh_like.hudi.writer.table_support import unsupported_option, unsupported_reason
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, Schema

if TYPE_CHECKING:
    from sqlmesh_like.spark.tables.hudi_table import HudiTable


def without_remains(uri: str) -> Timeline:
    """The timeline of a table, without a commit that a process left behind, so that its rows can be looked up."""
    if not Timeline(uri).exists:
        recover(uri)
    return settled_timeline(uri)


def commit_frame(frame: RowFrame, table: HudiTable, metadata: Mapping[str, str], columns: Schema = ()) -> None:
    """Upsert the rows (grain: key × partition) in one commit. Raises NotProvenError where Spark must write them.

    `columns`: with which the table is created if it has no commit; without them it is not.
    """
    from sqlmesh_like.spark.writer.local_commit import commit_rows

    timeline = without_remains(table.uri)
    try:
        if timeline.frontier is None and columns:
            _create(frame, table, metadata, columns)
            return
        reason = unsupported_reason(timeline, table.ordering, table.partition_field, table.options)
        avro = None if reason or timeline.frontier is None else timeline.schema_json(timeline.frontier)
        if avro is None:
            raise UnsupportedRowsError(reason or "its commits do not say its columns")
        commit_rows(timeline, _arrow(frame, file_schema(avro)), table, metadata)
    except UnsupportedRowsError as error:
        raise NotProvenError(str(error)) from error


def _create(frame: RowFrame, table: HudiTable, metadata: Mapping[str, str], columns: Schema) -> None:
    reason = "it is merge-on-read" if table.table_type == "mor" else unsupported_option(table.options)
    if reason or rows_without_commit(table.uri):
        raise UnsupportedRowsError(reason or "it has files and no commit")
    new = NewTable(table.uri, table.name, columns, table.partition_field, table.buckets, table.ordering)
    new.write(_arrow(frame, file_schema(table_schema(new))).drop_columns([IS_DELETED]), metadata)


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
