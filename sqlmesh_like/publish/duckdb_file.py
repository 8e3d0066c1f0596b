"""A DuckDB file, which needs no server. Owns its statements; a publication is one transaction, new columns included.

DuckDB lets one process write while no other has the file open; otherwise it raises an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa

from sqlmesh_like.duckdb.duck_connection import database
from sqlmesh_like.errors import NodeError, first_line
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.store import DELETED_COLUMN, KEY_COLUMN, STATE, Published, columns_from, foreign, overtaken
from sqlmesh_like.remedies import remedy
from sqlmesh_like.run.ports import Export
from sqlmesh_like.sql_text import standard_identifier as quoted

_ROWS = "_sml_rows"
_CHANGE = "_sml_change"


class DuckDBStore:
    """One file; it is open only while it is read or written, so that others can open it in between."""

    def __init__(self, destination: Destination) -> None:
        self._name = destination.name
        self._path = Path(destination.place)
        self._schema = destination.schema or "main"
        self._state = f"{quoted(self._schema)}.{quoted(STATE)}"
        self._shared: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._open() as db:
            db.execute("BEGIN")
            self._shared = db
            try:
                yield
                fault_point("publish.together")
                db.execute("COMMIT")
            finally:
                self._shared = None

    def close(self) -> None:
        """Do nothing: the file is not left open."""

    def read_published(self, table: str) -> Published | None:
        if self._shared is None and not self._path.exists():
            return None
        with self._open() as db:
            if not self._has(db, STATE):
                known = None
            else:
                select = f"SELECT model, uri, frontier, columns FROM {self._state} WHERE table_name = ?"
                known = db.execute(select, [table]).fetchone()
            if known is None:
                if self._has(db, table):
                    raise foreign(table, self._name)
                return None
            published = Published(known[0], known[1], known[2], columns_from(known[3]))
            names = tuple(name for name, _ in published.columns)
            return published if self._names(db, table) == {KEY_COLUMN, *names} else replace(published, frontier=None)

    def write(self, table: str, export: Export, old: Published | None, new: Published) -> None:
        with self._open() as db:
            if self._shared is None:
                db.execute("BEGIN")
            self._mark(db, table, None if export.whole else old, new)
            target = f"{quoted(self._schema)}.{quoted(table)}"
            db.register(_ROWS, pa.RecordBatchReader.from_batches(export.schema, export.batches()))
            staying = f"SELECT * EXCLUDE ({DELETED_COLUMN})"
            if export.whole:
                db.execute(f"CREATE OR REPLACE TABLE {target} AS {staying} FROM {_ROWS}")
            else:
                db.execute(f"CREATE OR REPLACE TEMP TABLE {_CHANGE} AS FROM {_ROWS}")
                db.execute(
                    f"DELETE FROM {target} USING {_CHANGE} c WHERE {quoted(table)}.{KEY_COLUMN} = c.{KEY_COLUMN}"
                )
                db.execute(f"INSERT INTO {target} BY NAME {staying} FROM {_CHANGE} WHERE NOT {DELETED_COLUMN}")
            fault_point("publish.written")
            if self._shared is None:
                db.execute("COMMIT")

    def _mark(self, db: duckdb.DuckDBPyConnection, table: str, followed: Published | None, new: Published) -> None:
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(self._schema)}")
        columns = "table_name VARCHAR, model VARCHAR, uri VARCHAR, frontier VARCHAR, columns VARCHAR"
        db.execute(f"CREATE TABLE IF NOT EXISTS {self._state} ({columns}, published_at TIMESTAMP)")
        row = db.execute(f"SELECT frontier FROM {self._state} WHERE table_name = ?", [table]).fetchone()
        if followed is not None and (row is None or row[0] != followed.frontier):
            raise overtaken(table)
        db.execute(f"DELETE FROM {self._state} WHERE table_name = ?", [table])
        values = [table, new.model, new.uri, new.frontier, new.columns_json]
        db.execute(f"INSERT INTO {self._state} VALUES (?, ?, ?, ?, ?, now()::TIMESTAMP)", values)

    def _has(self, db: duckdb.DuckDBPyConnection, table: str) -> bool:
        return bool(self._names(db, table))

    def _names(self, db: duckdb.DuckDBPyConnection, table: str) -> set[str]:
        """Return the names of a table's columns, empty where there is no such table."""
        select = (
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_catalog = current_database() AND table_schema = ? AND table_name = ?"
        )
        return {row[0] for row in db.execute(select, [self._schema, table]).fetchall()}

    @contextmanager
    def _open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection; changes that are not committed when it is closed are lost."""
        if self._shared is not None:
            yield self._shared
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with database(str(self._path)) as db:
                yield db
        except duckdb.IOException as error:
            hint = remedy(error, "sml publish") or "close what has the file open, then: sml publish"
            raise NodeError(f"{self._name}: {first_line(error)}", hint=hint) from None
        except duckdb.Error as error:
            message = f"{self._name}: DuckDB says: {first_line(error)}"
            raise NodeError(message, hint=remedy(error, "sml publish")) from None
        except OSError as error:
            message = f"{self._name}: {self._path}: {error.strerror}"
            raise NodeError(message, hint=remedy(error, "sml publish")) from None
