"""A table whose source has no rows yet. Owns when it is made without events: where its declaration says all of it.

Models read it like any other, instead of waiting for the first row of a table that may stay empty for good.
"""

from __future__ import annotations

from sqlmesh_like.cdc.in_process.commits import commit_frame, without_remains
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.schema.schema_evolution import evolve_schema
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.table_batch import hudi_table
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED
from sqlmesh_like.project.nodes import SourceTable


def make_empty_table(place: SourcePaths, table: SourceTable) -> bool:
    """Make a table without rows, as its first event would make it. Returns whether it is there now, and was not.

    Nothing is made where a column has no declared type, which the first event will state, or where `on_schema_change`
    keeps columns as the table was made: the declaration need not have all of them. Nor with a catalog, to which Spark
    would have to be started to tell it.
    """
    ingest, uri = table.ingest, place.table_uri(table)
    source = place.source.ingest
    if ingest is None or source is None or source.on_schema_change != "evolve" or place.target.catalog != "none":
        return False
    if not table.columns or any(column.type is None for column in table.columns):
        return False
    try:
        if Timeline(uri).exists or without_remains(uri).frontier is not None:
            return False
        layout = evolve_schema(table, ingest, (), ()).layout
        if ingest.primary_key and not layout.has_key:
            return False
        frame = RowFrame([*(column.name for column in layout.stored_columns), IS_DELETED], [])
        made, metadata = hudi_table(place, layout, uri)
        commit_frame(frame, made, metadata, layout.stored_columns)
    except (IngestError, NotProvenError):  # its first event makes it, or says what is wrong with its declaration
        return False
    return True
