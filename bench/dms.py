"""A source database that changes, and its log as files of AWS DMS. Owns the files; callers decide which rows change.

DuckDB holds the tables as they are after each batch. The data is deterministic.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb

Spread = Literal["newest", "scattered"]
_LOAD = "LOAD00000001"


@dataclass(frozen=True)
class Change:
    """One batch: the share of the orders that are inserted, updated and deleted, a third each."""

    share: float
    spread: Spread

    @property
    def name(self) -> str:
        """
        >>> Change(0.001, "newest").name
        '0.1% newest'
        """
        return f"{self.share * 100:g}% {self.spread}"

    @staticmethod
    def parse(text: str) -> Change:
        """Return the change that a text of an option describes. Raises ValueError.

        >>> Change.parse("newest:0.1")
        Change(share=0.001, spread='newest')
        """
        match = re.fullmatch(r"(newest|scattered):([0-9.]+)", text)
        if match is None:
            raise ValueError(f"{text!r} is not newest:PERCENT or scattered:PERCENT")
        return Change(float(match[2]) / 100, "newest" if match[1] == "newest" else "scattered")


@dataclass(frozen=True)
class SourceDatabase:
    """The tables of database `name` in `file`, with their primary keys; DMS files are written into `landing`."""

    name: str
    file: Path
    landing: Path
    primary_keys: Mapping[str, Sequence[str]]

    def load(self, queries: Mapping[str, str]) -> None:
        """Create the tables, each by its query, and their load files."""
        with self._connected() as db:
            for table, query in queries.items():
                db.execute(f"create table {table} as {query}")
                self._write(db, f"select * from {table}", table, _LOAD)

    def change(self, statements: Sequence[str], number: int) -> dict[str, int]:
        """Change the tables in one batch and write it to files named by `number`; return changed rows by table.

        The statements create `d_<table>` with the changed rows, `Op` (I, U, D) first.
        """
        counts = {}
        with self._connected() as db:
            db.execute("begin")
            for statement in statements:
                db.execute(statement)
            for table in self.primary_keys:
                if _one(db, f"select count(*) from duckdb_tables() where table_name = 'd_{table}'"):
                    self._write(db, f"select * from d_{table}", table, f"{number:08d}")
                    counts[table] = _one(db, f"select count(*) from d_{table}")
                    self._apply(db, table)
            db.execute("commit")
        return counts

    def rows(self, table: str) -> int:
        with self._connected() as db:
            return _one(db, f"select count(*) from {table}")

    def _write(self, db: duckdb.DuckDBPyConnection, query: str, table: str, name: str) -> None:
        folder = self.landing / self.name / table
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{name}"
        db.execute(f"copy ({query}) to '{unfinished}' (format parquet, compression zstd)")
        os.replace(unfinished, folder / f"{name}.parquet")

    def _apply(self, db: duckdb.DuckDBPyConnection, table: str) -> None:
        keys = ", ".join(self.primary_keys[table])
        db.execute(f"delete from {table} where ({keys}) in (select ({keys}) from d_{table})")
        db.execute(f"insert into {table} select * exclude (Op) from d_{table} where Op <> 'D'")

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect(str(self.file)) as db:
            yield db


def _one(db: duckdb.DuckDBPyConnection, query: str) -> int:
    row = db.execute(query).fetchone()
    assert row is not None
    return int(row[0])
