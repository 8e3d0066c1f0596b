"""Rows that Spark's executors read in a table that is too large to be read here. Owns their values as DuckDB's.

One job returns the rows that meet the keys of a step; all that follows runs as over files. `remote_steps` has steps
that executors compute.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import LocalTable, is_plain, stored_value
from sqlmesh_like.names import Schema
from sqlmesh_like.run.remote_reader import KeyedRows

_ARRIVED = "_sml_arrived"


@dataclass(frozen=True)
class ExecutorRows:
    """The rows of one copy-on-write table as of a frontier, on executors, which return at most `most` of them."""

    look_up: Callable[[KeyedRows], pa.Table | None]
    table: LocalTable
    frontier: str
    most: int

    def rows(
        self, db: duckdb.DuckDBPyConnection, keys: str, own: Sequence[str], columns: Collection[str]
    ) -> str | None:
        """SELECT of the rows whose columns `own` have the values of a row of the table `keys` (columns k0, k1, …).

        None where they are too many, or of types whose values might become others on the way.
        """
        wanted = tuple(column for column in self.table.schema if column.name in columns)
        if not all(is_plain(column.type) for column in wanted):
            return None
        named = ", ".join(f"k{number} AS {duck_quoted(name)}" for number, name in enumerate(own))
        values = db.sql(f"SELECT {named} FROM {keys}").to_arrow_table()
        arrived = self.look_up(KeyedRows(self.table.uri, self.frontier, values, wanted, self.most))
        return None if arrived is None else arrived_rows(db, arrived, wanted)


def arrived_rows(db: duckdb.DuckDBPyConnection, rows: pa.Table, columns: Schema) -> str:
    """SELECT of rows that executors have returned, until others arrive. Raises Unproven for broken texts."""
    db.register(_ARRIVED, _without_zones(rows))
    return f"SELECT {', '.join(stored_value(column) for column in columns)} FROM {_ARRIVED}"


def _without_zones(rows: pa.Table) -> pa.Table:
    """The rows with times that DuckDB reads without a zone, as they are UTC. Raises Unproven for broken texts."""
    try:
        rows.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Unproven(f"rows from executors: {error}") from error
    for number, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(number, column.name, rows.column(number).cast(pa.timestamp("us")))
    return rows
