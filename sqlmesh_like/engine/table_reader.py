"""Rows of a copy-on-write table with no JVM. Owns when that is possible; Spark reads the rest."""

from __future__ import annotations

from pyarrow import dataset, parquet

from sqlmesh_like.engine.storage import folder
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.names import visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Rows


def read_rows(state: TableState, limit: int) -> Rows | None:
    """Visible rows of a table at its frontier (`limit` -1: all); None where only Spark reads it rightly.

    Files of different writer schemas and other table types are left to Spark.
    """
    if state.kind != "cow" or state.frontier is None or state.schema is None:
        return None
    timeline = Timeline(state.uri)
    place = folder(state.uri)
    slices = timeline.slices(state.frontier).values()
    if len({timeline.schema_json(f"{found.instant}_") for found in slices}) > 1:
        return None
    names = [column.name for column in visible(state.schema)]
    if not slices:
        return Rows(visible(state.schema), ())
    paths = sorted(f"{place.path}/{found.path}" for found in slices)
    if not set(names) <= set(parquet.read_schema(paths[0], filesystem=place.fs).names):
        return None
    files = dataset.dataset(paths, format="parquet", filesystem=place.fs)
    scanner = files.scanner(columns=names)
    table = scanner.to_table() if limit < 0 else scanner.head(limit)
    columns = [table.column(name).to_pylist() for name in names]
    return Rows(visible(state.schema), tuple(zip(*columns, strict=True)))
