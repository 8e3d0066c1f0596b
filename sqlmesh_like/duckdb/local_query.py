"""Any SELECT over a lake's tables without a JVM. Owns when DuckDB's result is Spark's; Spark runs the rest.

Local tables are Parquet files that the timeline names; merge-on-read ones also have change logs. DuckDB reads only the
columns and row groups that a query needs. `allow_list` owns what DuckDB is trusted to compute, as for tests without a
lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import duckdb
from sqlglot import exp

from sqlmesh_like.duckdb.duck_engine import DuckEngine, NotCheckable
from sqlmesh_like.duckdb.duck_history import DuckHistory
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted
from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.hudi.reading.rows_plan import SliceMerge
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.table_reader import whole_files
from sqlmesh_like.names import Column, Schema, TableName, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.sql_text import standard_literal


@dataclass(frozen=True)
class _Source:
    """Files of a table, and the FROM item that reads its rows from them."""

    paths: list[str]
    item: str


def local_rows(
    tree: exp.Expr, tables: Mapping[TableName, TableState], shown: Schema | None, limit: int, now: datetime
) -> Rows | None:
    """Rows of a query (`limit` -1: all) over tables as of their frontiers; None if only Spark computes them correctly.

    `shown` are the result columns with Spark's types, if these are known.
    """
    if not all(folder(state.uri).is_in_reach and not _is_nested(state) for state in tables.values()):
        return None
    try:
        sources = {table: source for table, state in tables.items() if (source := _readable(state)) is not None}
    except OSError:
        return None  # a file is gone, which Spark reports
    if len(sources) < len(tables) or _divides_decimals(tree, tables.values()):
        return None
    engine = _LocalTables(now, sources)
    try:
        engine.show(sources, tables)
        return engine.rows(tree, shown, limit)
    except (NotCheckable, duckdb.Error):
        return None  # it may fail in Spark as well, which then reports the reason
    finally:
        engine.stop()


def _readable(state: TableState) -> _Source | None:
    """A table's files, and the FROM item over them; None if only Spark can read it."""
    if state.kind not in ("cow", "mor") or state.frontier is None:
        return None
    root = folder(state.uri)
    if (whole := whole_files(state)) is not None:
        paths = [root.data_path(path.removeprefix(f"{root.path}/")) for path in whole]
        return _Source(paths, _files(paths, visible(state.schema or ())))
    table = local_table(state, MergedSlices(), hidden=False)
    try:
        plan = table.rows_plan(state.frontier) if table else None
        if table is None or plan is None or isinstance(plan.source, SliceMerge):
            return None
        rows = table.select_rows(plan)
    except Unproven:
        return None
    return _Source([root.data_path(path) for path in plan.source.paths], f"({rows})")


def _is_nested(state: TableState) -> bool:
    return any("<" in (column.type or "<") for column in state.schema or ())


def _divides_decimals(tree: exp.Expr, tables: Iterable[TableState]) -> bool:
    """Whether a query may divide or average decimals, for which DuckDB returns a double of only 15 digits."""
    stored = any((c.type or "").startswith("decimal") for state in tables for c in state.schema or ())
    is_exact = stored or any(cast.is_type("decimal") for cast in tree.find_all(exp.Cast))
    return is_exact and tree.find(exp.Div, exp.Avg) is not None


class _LocalTables(DuckEngine):
    """DuckDB over the files of these tables, without access to any others."""

    def __init__(self, now: datetime, sources: Mapping[TableName, _Source]) -> None:
        paths = [path for each in sources.values() for path in each.paths]
        super().__init__(DuckHistory(), lambda *_: None, now, paths)

    def show(self, sources: Mapping[TableName, _Source], tables: Mapping[TableName, TableState]) -> None:
        """Create the views of the tables. Raises duckdb.Error where a file cannot be read."""
        for table, source in sources.items():
            self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {duck_quoted(table.schema)}")
            spelt = f"{duck_quoted(table.schema)}.{duck_quoted(table.identifier)}"
            columns = visible(tables[table].schema or ())
            items = ", ".join(cast_item(column.name, column.type) for column in columns)
            self._db.execute(f"CREATE VIEW {spelt} AS SELECT {items} FROM {source.item}")

    def rows(self, tree: exp.Expr, shown: Schema | None, limit: int) -> Rows:
        text = self._text(tree)
        result = self._db.execute(f"DESCRIBE {text}").fetchall()
        types = {column.name.lower(): column.type for column in shown or ()}
        items = ", ".join(cast_item(row[0], types.get(row[0].lower())) for row in result)
        whole = f"SELECT {items} FROM ({text})"
        rows = self._db.execute(whole if limit < 0 else f"{whole} LIMIT {limit}").fetchall()
        return Rows(tuple(Column(row[0], types.get(row[0].lower())) for row in result), tuple(rows))


def _files(paths: list[str], columns: Schema) -> str:
    if paths:
        files = ", ".join(standard_literal(path) for path in paths)
        return f"read_parquet([{files}], hive_partitioning = false)"
    nothing = ", ".join(f"NULL AS {duck_quoted(column.name)}" for column in columns)
    return f"(SELECT {nothing}) WHERE false"
