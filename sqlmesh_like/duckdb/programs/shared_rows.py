"""Rows that several models of a run read, in one database. Owns its life, and reading each change and table once."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from threading import Lock

import duckdb

from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.duckdb.exact_sql import SETUP
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.duckdb.programs.shared_lookups import SharedLookups
from sqlmesh_like.hudi.storage import forget_ranges

_MEMORY_SHARE = "25%"


class SharedRows:
    """What the models of one run of `sml` read. Calls may come from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._db: duckdb.DuckDBPyConnection | None = None
        self._folder: Path | None = None
        self._changes: dict[object, tuple[str, int]] = {}
        self._rows: dict[object, str] = {}
        self._tables = 0
        self._files = 0
        self.merged = MergedSlices()
        self.lookups = SharedLookups()

    def release(self) -> None:
        """Forget everything that was read."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._db = self._folder = None
            self._changes.clear()
            self._rows.clear()
            self.merged.forget()
            forget_ranges()
            self.lookups.forget()

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection to the database, with temporary tables of its own."""
        with self._lock:
            if self._db is None:
                self._folder = Path(tempfile.mkdtemp(prefix="sml-"))
                self._db = file_worker(_MEMORY_SHARE, str(self._folder), keeps_order=False)
                for statement in SETUP:
                    self._db.execute(statement)
            return self._db.cursor()

    def new_file(self) -> Path:
        """A path for a file that is removed on release."""
        with self._lock:
            assert self._folder is not None
            self._files += 1
            return self._folder / f"{self._files}.parquet"

    def change(self, db: duckdb.DuckDBPyConnection, table: LocalTable, start: str, end: str) -> tuple[str, int]:
        """The name of the table with the signed rows between two frontiers, and their number."""
        with self._lock:
            known = (table.uri, start, end)
            if known not in self._changes:
                name = f"_sml_change_{len(self._changes)}"
                count = db.execute(f"CREATE TABLE {name} AS {table.change(start, end)}").fetchall()
                self._changes[known] = (name, int(count[0][0]))
            return self._changes[known]

    def rows(self, db: duckdb.DuckDBPyConnection, table: LocalTable, frontier: str) -> str:
        """SELECT of the rows of a table as of a frontier."""

        def keep(query: str) -> str:
            self._tables += 1
            db.execute(f"CREATE TABLE _sml_kept_{self._tables} AS {query}")
            return f"_sml_kept_{self._tables}"

        with self._lock:
            known = (table.uri, frontier, table.schema)
            if known not in self._rows:
                self._rows[known] = table.shared_rows(frontier, keep)
            return self._rows[known]
