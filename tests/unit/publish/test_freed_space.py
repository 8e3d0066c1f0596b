"""What a destination's file on this machine keeps of deleted rows: nothing, after it was rewritten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.freed_space import drop_freed_space, local_files

SECRET = b"mary.secret@example.com"


def destination(kind: str, place: str) -> Destination:
    return Destination("bi", kind, place)  # type: ignore[arg-type]


def fill(db: sqlite3.Connection | duckdb.DuckDBPyConnection) -> None:
    db.execute("create table people (id integer, email text)")
    rows = ", ".join(f"({number}, '{SECRET.decode()}{number}')" for number in range(200))
    db.execute(f"insert into people values {rows}")
    db.execute("delete from people where id > 0")


def test_a_database_of_sqlite_is_rewritten_without_deleted_rows(tmp_path: Path) -> None:
    path = tmp_path / "bi.db"
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("pragma secure_delete = off")
    fill(db)
    db.close()
    assert SECRET + b"150" in path.read_bytes()
    to = destination("url", f"sqlite:///{path}?timeout=1")
    drop_freed_space(to)
    assert SECRET + b"150" not in path.read_bytes()
    db = sqlite3.connect(path)
    assert db.execute("select * from people").fetchall() == [(0, SECRET.decode() + "0")]
    db.close()
    assert [each.name for each in local_files(to)] == ["bi.db", "bi.db.wal", "bi.db-wal", "bi.db-journal"]


def test_a_file_of_duckdb_is_rewritten_without_deleted_rows(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as db:
        fill(db)
    (tmp_path / "it's.duckdb.new").write_bytes(b"of a rewrite that was killed")
    drop_freed_space(destination("duckdb", str(path)))
    assert SECRET + b"150" not in path.read_bytes()
    with duckdb.connect(str(path)) as db:
        assert db.execute("select count(*), max(id) from people").fetchall() == [(1, 0)]
    assert not (tmp_path / "it's.duckdb.new").exists()


def test_a_file_that_cannot_be_rewritten_is_left_and_said(tmp_path: Path) -> None:
    path = tmp_path / "bi.db"
    path.write_bytes(b"something else" * 99)
    with pytest.raises(NodeError, match="bi: file is not a database") as caught:
        drop_freed_space(destination("url", f"sqlite:///{path}"))
    assert path.read_bytes() == b"something else" * 99
    assert caught.value.hint == "close what has the file open, then run this again"


@pytest.mark.parametrize("place", ["postgresql://u@h/d", "sqlite://", "sqlite:///:memory:"])
def test_servers_and_memory_have_no_file_of_ours(place: str) -> None:
    drop_freed_space(destination("url", place))
    assert local_files(destination("url", place)) == []
