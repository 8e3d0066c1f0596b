"""Any SELECT over a lake's tables with no JVM. Owns when DuckDB's answer is Spark's; Spark answers the rest.

Copy-on-write tables on this machine are Parquet files, which the timeline names: DuckDB reads the columns and row
groups that a query needs. What DuckDB is trusted to compute is `allow_list`'s, the same as for tests without a lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import duckdb
from sqlglot import exp

from sqlmesh_like.duckdb.duck_engine import DuckEngine, NotCheckable
from sqlmesh_like.duckdb.duck_history import DuckHistory
from sqlmesh_like.duckdb.duck_types import cast_item, duck_quoted
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.table_reader import whole_files
from sqlmesh_like.names import Column, Schema, TableName, visible
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.sql_text import standard_literal


def local_rows(
    tree: exp.Expr, tables: Mapping[TableName, TableState], shown: Schema | None, limit: int, now: datetime
) -> Rows | None:
    """Rows of a query (`limit` -1: all) over tables as of their frontiers; None where only Spark gives them rightly.

    `shown` are the columns with the types that Spark gives them, where these are known.
    """
    files = {table: whole_files(state) for table, state in tables.items()}
    is_here = all(folder(state.uri).is_local for state in tables.values())
    if not is_here or any(paths is None or _is_nested(tables[table]) for table, paths in files.items()):
        return None
    if _divides_decimals(tree, tables.values()):
        return None
    engine = _LocalTables(now, {table: paths or [] for table, paths in files.items()}, tables)
    try:
        return engine.rows(tree, shown, limit)
    except (NotCheckable, duckdb.Error):
        return None  # it may fail there as well: then it is Spark that says why
    finally:
        engine.stop()


def _is_nested(state: TableState) -> bool:
    return any("<" in (column.type or "<") for column in state.schema or ())


def _divides_decimals(tree: exp.Expr, tables: Iterable[TableState]) -> bool:
    """Whether a quotient of decimals may be wanted: DuckDB gives a double, which has 15 digits."""
    stored = any((c.type or "").startswith("decimal") for state in tables for c in state.schema or ())
    is_exact = stored or any(cast.is_type("decimal") for cast in tree.find_all(exp.Cast))
    return is_exact and tree.find(exp.Div, exp.Avg) is not None


class _LocalTables(DuckEngine):
    """DuckDB over the files of tables, which it can read and nothing else."""

    def __init__(
        self, now: datetime, files: Mapping[TableName, list[str]], tables: Mapping[TableName, TableState]
    ) -> None:
        super().__init__(DuckHistory(), lambda *_: None, now, [path for paths in files.values() for path in paths])
        for table, paths in files.items():
            self._db.execute(f"CREATE SCHEMA IF NOT EXISTS {duck_quoted(table.schema)}")
            spelt = f"{duck_quoted(table.schema)}.{duck_quoted(table.identifier)}"
            columns = visible(tables[table].schema or ())
            items = ", ".join(cast_item(column.name, column.type) for column in columns)
            self._db.execute(f"CREATE VIEW {spelt} AS SELECT {items} FROM {_source(paths, columns)}")

    def rows(self, tree: exp.Expr, shown: Schema | None, limit: int) -> Rows:
        text = self._text(tree)
        result = self._db.execute(f"DESCRIBE {text}").fetchall()
        types = {column.name.lower(): column.type for column in shown or ()}
        items = ", ".join(cast_item(row[0], types.get(row[0].lower())) for row in result)
        whole = f"SELECT {items} FROM ({text})"
        rows = self._db.execute(whole if limit < 0 else f"{whole} LIMIT {limit}").fetchall()
        return Rows(tuple(Column(row[0], types.get(row[0].lower())) for row in result), tuple(rows))


def _source(paths: list[str], columns: Schema) -> str:
    if paths:
        files = ", ".join(standard_literal(path) for path in paths)
        return f"read_parquet([{files}], hive_partitioning = false)"
    nothing = ", ".join(f"NULL AS {duck_quoted(column.name)}" for column in columns)
    return f"(SELECT {nothing}) WHERE false"
