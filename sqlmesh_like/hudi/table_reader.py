"""Rows of a copy-on-write table without a JVM. Owns when that is possible; Spark reads the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyarrow import compute, dataset, parquet

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.reading.foreign_files import foreign_reason
from sqlmesh_like.hudi.reading.recent_timelines import timeline_at
from sqlmesh_like.hudi.storage import FileSystem, folder
from sqlmesh_like.names import visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Rows


def read_table_rows(state: TableState, limit: int) -> Rows | None:
    """Visible rows of a table at its frontier (`limit` -1: all); None where only Spark can read it.

    Files of different writer schemas and other table types are left to Spark. Raises NodeError where a file is missing.
    """
    with _missing_file_named(state):
        paths = whole_files(state)
        if paths is None or state.schema is None:
            return None
        if not paths:
            return Rows(visible(state.schema), ())
        table = _scan_files(state, paths, limit)
    return Rows(visible(state.schema), tuple(zip(*(column.to_pylist() for column in table.columns), strict=True)))


def read_arrow_table(state: TableState, limit: int) -> Any | None:
    """The same rows as a `pyarrow.Table` in the types of the files; None also where the table has no file.

    Raises NodeError where a file is missing.
    """
    with _missing_file_named(state):
        paths = whole_files(state)
        return _scan_files(state, paths, limit) if paths else None


@contextmanager
def _missing_file_named(state: TableState) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        hint = "unless it has just been cleaned by another process: sml repair builds the table again"
        raise NodeError(f"a data file of {state.uri} is missing: {error}", hint=hint) from error


def _scan_files(state: TableState, paths: list[str], limit: int) -> Any:
    files = dataset.dataset(paths, format="parquet", filesystem=folder(state.uri).fs)
    scanner = files.scanner(columns=[column.name for column in visible(state.schema or ())])
    return scanner.to_table() if limit < 0 else scanner.head(limit)


def whole_files(state: TableState) -> list[str] | None:
    """Files with exactly a table's rows at its frontier and the same visible columns and types; None: not possible.

    Paths are those of the file system, not URIs.
    """
    if state.kind != "cow" or state.frontier is None or state.schema is None:
        return None
    timeline = timeline_at(state.uri, state.frontier)
    root = folder(state.uri)
    slices = timeline.slices(state.frontier).values()
    schemas = {base.path: timeline.schema_json(f"{base.instant}_") for base in slices}
    is_one = len({schema for schema in schemas.values() if schema}) <= 1
    if not is_one or foreign_reason(timeline, slices, visible(state.schema)):
        return None
    paths = [f"{root.path}/{path}" for path in sorted(schemas)]
    # The commits of old files are archived: these files state their columns themselves.
    old = [f"{root.path}/{path}" for path, schema in schemas.items() if schema is None]
    shown = [_visible_columns(path, state, root.fs) for path in {*paths[:1], *old}]
    return paths if all(columns is not None and columns == shown[0] for columns in shown) else None


def _visible_columns(path: str, state: TableState, fs: FileSystem) -> list[tuple[str, str]] | None:
    """Names and types of a table's visible columns in a file; None where it lacks some."""
    schema = parquet.read_schema(path, filesystem=fs)
    names = [column.name for column in visible(state.schema or ())]
    return [(name, str(schema.field(name).type)) for name in names] if {*names} <= {*schema.names} else None


def largest(state: TableState, column: str) -> tuple[object] | None:
    """The largest value of a column at a table's frontier (NULL without values); None where only Spark can read it."""
    stored = next((each for each in visible(state.schema or ()) if each.name.lower() == column.lower()), None)
    if state.kind != "cow" or state.frontier is None or stored is None:
        return None
    root = folder(state.uri)
    maxima: list[Any] = []
    for base in timeline_at(state.uri, state.frontier).slices(state.frontier).values():
        path = f"{root.path}/{base.path}"
        if stored.name not in parquet.read_schema(path, filesystem=root.fs).names:
            continue
        values = parquet.read_table(path, columns=[stored.name], filesystem=root.fs).column(0)
        maxima += [] if values.null_count == len(values) else [compute.max(values).as_py()]
    if len({type(value) for value in maxima}) > 1:
        return None
    return (max(maxima, default=None),)
