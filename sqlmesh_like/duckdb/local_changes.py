"""Changes of tables, and rows for destinations, without a JVM. Owns when that is possible; otherwise Spark reads them.

The signed rows are those of `local_files`; which rows a publication gets follows `spark.export`, which gives the
reasons.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import PLAIN, LocalTable
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.reading.change_plan import KIND_OF_CHANGE
from sqlmesh_like.names import KEY, WEIGHT, Column
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Export, Rows

_LOG = logging.getLogger(__name__)
_GONE = "_sml_deleted"
_BATCH_ROWS = 10_000
_MEMORY_SHARE = "25%"
_ARROW = {
    "int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(),
    "string": pa.string(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
}  # fmt: skip


@dataclass(frozen=True)
class _LocalRows:
    """One table and a database that reads it."""

    db: duckdb.DuckDBPyConnection
    table: LocalTable

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.table.schema if column.name != KEY)

    @property
    def names(self) -> str:
        return ", ".join(duck_quoted(column.name) for column in self.columns)

    def net_change(self, start: str, end: str) -> str:
        """SELECT of the signed rows between two frontiers; rows rewritten without a change cancel out."""
        grouped = f"{KEY}, {self.names}" if self.columns else KEY
        signed = self.table.change(start, end)
        return f"SELECT {grouped}, sum({WEIGHT}) AS {WEIGHT} FROM ({signed}) GROUP BY ALL HAVING sum({WEIGHT}) <> 0"


@contextmanager
def _open_rows(state: TableState) -> Iterator[_LocalRows | None]:
    """The table as DuckDB reads it; None if it cannot, or cannot return each value unchanged."""
    merged = MergedSlices()
    table = local_table(state, merged, hidden=False)
    is_plain = all(c.type in PLAIN or (c.type or "").startswith("decimal") for c in (table.schema if table else ()))
    if table is None or not is_plain:
        yield None
        return
    try:
        with closing(file_worker(_MEMORY_SHARE)) as db:
            yield _LocalRows(db, table)
    finally:
        merged.forget()


def local_changes(state: TableState, since: str, limit: int) -> Rows | None:
    """Rows as `ChangeReader.changes` returns them; None if only Spark can read them."""
    assert state.frontier is not None
    with _open_rows(state) as rows:
        if rows is None:
            return None
        items = ", ".join(filter(None, (f"{KIND_OF_CHANGE} AS _change", rows.names)))
        try:
            text = f"SELECT {items} FROM ({rows.net_change(since, state.frontier)}) ORDER BY {KEY}, {WEIGHT}"
            fetched = rows.db.execute(text if limit < 0 else f"{text} LIMIT {limit}").fetchall()
        except (Unproven, duckdb.Error, OSError) as error:
            _LOG.debug("changes of %s are read by Spark: %s", state.uri, error)
            return None
        return Rows((Column("_change", "string"), *rows.columns), tuple(fetched))


@contextmanager
def local_export(state: TableState, since: str | None) -> Iterator[Export | None]:
    """Rows as `ChangeExporter.export` returns them; None if only Spark can read them."""
    assert state.frontier is not None
    with _open_rows(state) as rows:
        export = None
        try:
            export = None if rows is None else _export_rows(rows, state.frontier, since)
        except (Unproven, OSError) as error:
            _LOG.debug("%s is exported by Spark: %s", state.uri, error)
        yield export


def _export_rows(rows: _LocalRows, frontier: str, since: str | None) -> Export:
    names = f"{rows.names}, " if rows.columns else ""
    key = f"sha256({KEY})[1:32] AS {KEY}"
    if since is None:
        query = f"SELECT {names}{key}, false AS {_GONE} FROM ({rows.table.rows(frontier)})"
    else:
        query = (
            f"SELECT {names}{key}, {WEIGHT} < 0 AS {_GONE} FROM ({rows.net_change(since, frontier)})"
            f" QUALIFY row_number() OVER (PARTITION BY {KEY} ORDER BY {WEIGHT} DESC) = 1"
        )
    fields = [(column.name, _arrow_type(column.type or "")) for column in rows.columns]
    schema = pa.schema([*fields, (KEY, pa.string()), (_GONE, pa.bool_())])

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            with closing(rows.db.cursor()) as db:
                reader: Any = db.sql(query).to_arrow_reader(_BATCH_ROWS)
                for batch in reader:
                    yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
        except duckdb.Error as error:
            hint = "run again: another process may have cleaned the table's history meanwhile"
            raise RetryableError(f"{rows.table.uri} cannot be read: {error}", hint=hint) from error

    return Export(since is None, schema, batches)


def _arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of a column in Spark's own files. Raises Unproven."""
    if type_.startswith("decimal("):
        precision, scale = type_[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    if type_ not in _ARROW:
        raise Unproven(f"a column of {type_}")
    return _ARROW[type_]
