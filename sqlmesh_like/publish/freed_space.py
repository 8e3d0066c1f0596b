"""Rows that a destination's file still has after they were deleted. Owns rewriting the file without them.

A database only marks the space of deleted rows as free. Servers do so too, but their files are theirs. A Parquet folder
has the files of the release before.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb

from sqlmesh_like.duckdb.duck_connection import file_worker
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.storage import local_path
from sqlmesh_like.names import is_local
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.file_sets import remove_former
from sqlmesh_like.sql_text import standard_literal

_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")


def local_file(destination: Destination) -> Path | None:
    """The file or folder of a destination on this machine; None for a server or a remote folder."""
    if destination.kind == "url":
        path = next(
            (destination.place.removeprefix(each) for each in _SQLITE if destination.place.startswith(each)), ""
        )
        return Path(path.partition("?")[0]) if path and not path.startswith(":memory:") else None
    return local_path(destination.place) if is_local(destination.place) else None


def local_files(destination: Destination) -> list[Path]:
    """What a destination has on this machine: its file or folder, and a database's logs beside it."""
    path = local_file(destination)
    if path is None:
        return []
    return [path, *(path.with_name(f"{path.name}{suffix}") for suffix in (".wal", "-wal", "-journal"))]


def drop_freed_space(destination: Destination) -> None:
    """Rewrite a database's file on this machine, or remove former files. Raises NodeError where another has it open."""
    path = local_file(destination)
    if path is not None and destination.kind == "parquet":
        remove_former(path / (destination.schema or ""))
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
