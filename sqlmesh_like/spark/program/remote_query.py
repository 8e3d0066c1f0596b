"""One query of a program whose other steps run in another process. Owns the frame of its rows, and their bound."""

from __future__ import annotations

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from sqlmesh_like.names import Column
from sqlmesh_like.run.remote_reader import RemoteQuery, RemoteRows
from sqlmesh_like.spark.frames.arrow_frame import arrow_frame, arrow_rows
from sqlmesh_like.spark.program.view_bindings import Bindings

_BROADCAST_BYTES = 16_000_000
"""Steps of up to this size are sent to each executor, so that a table joined with them is not shuffled."""


def query_rows(bindings: Bindings, wanted: RemoteQuery) -> RemoteRows:
    """The rows of the query; without rows where they are too many."""
    for name, rows in wanted.steps.items():
        frame = arrow_frame(bindings.session, rows, from_arrow_schema(rows.schema))
        shown = F.broadcast(frame) if rows.nbytes <= _BROADCAST_BYTES else frame
        shown.createOrReplaceTempView(name)
    frame = bindings.bound(wanted.query, wanted.prunes)
    columns = tuple(Column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    bytes_of_row = int(frame._jdf.schema().defaultSize())
    most = min(wanted.most_rows, wanted.most_bytes // max(1, bytes_of_row))
    return RemoteRows(arrow_rows(frame, most), columns)
