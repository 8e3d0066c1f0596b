"""Rows that a destination's file still has after they were deleted. Owns rewriting the file without them.

A database only marks the space of deleted rows as free. Servers do so too, but their files are theirs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from pathlib import Path

import duckdb

from sqlmesh_like.duckdb.duck_connection import database, file_worker
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.storage import is_local, local_path
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.sql_text import standard_identifier, standard_literal

_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")


def local_file(destination: Destination) -> Path | None:
    """The file or folder of a destination on this machine; None for a server or a remote folder."""
    if destination.kind == "url":
        path = next(
            (destination.place.removeprefix(each) for each in _SQLITE if destination.place.startswith(each)), ""
        )
        return Path(path.partition("?")[0]) if path and not path.startswith(":memory:") else None
    return local_path(destination.place) if is_local(destination.place) else None


def drop_freed_space(destination: Destination) -> None:
    """Rewrite a database's file on this machine. Raises NodeError where another process has it open."""
    path = local_file(destination)
    if path is None or not path.is_file():
        return
    try:
        if destination.kind == "url":
            with sqlite3.connect(path) as db:
                db.execute("VACUUM")
            db.close()
        else:
            _copy(path)
    except (duckdb.Error, sqlite3.Error, OSError) as error:
        hint = "close what has the file open, then run this again"
        raise NodeError(f"{destination.name}: {str(error).partition(chr(10))[0][:500]}", hint=hint) from None


def _copy(path: Path) -> None:
    new = path.with_name(f"{path.name}.new")
    for each in (new, new.with_name(f"{new.name}.wal")):
        each.unlink(missing_ok=True)
    with file_worker() as db:
        db.execute(f"ATTACH {standard_literal(str(path))} AS old")
        db.execute(f"ATTACH {standard_literal(str(new))} AS new")
        db.execute("COPY FROM DATABASE old TO new")
        db.execute("DETACH old")
        db.execute("DETACH new")
    new.replace(path)


def texts_in_database(destination: Destination, texts: Collection[str]) -> list[str]:
    """Those of the texts that a DuckDB file has in a row: its pages are compressed, so bytes do not show them."""
    path = local_file(destination)
    if destination.kind != "duckdb" or path is None or not path.is_file():
        return []
    result = set[str]()
    with database(str(path)) as db:
        tables = db.execute(
            "SELECT table_schema, table_name, list(column_name) FROM information_schema.columns"
            " WHERE table_catalog = current_database() GROUP BY ALL"
        ).fetchall()
        for schema, table, columns in tables:
            where = " OR ".join(f"contains(CAST({standard_identifier(name)} AS VARCHAR), $1)" for name in columns)
            name = f"{standard_identifier(schema)}.{standard_identifier(table)}"
            for text in texts:
                if db.execute(f"SELECT 1 FROM {name} WHERE {where} LIMIT 1", [text]).fetchone():
                    result.add(text)
    return sorted(result)
