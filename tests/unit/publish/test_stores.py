"""Each destination shows exactly the table, round after round, and after any crash the old rows or the new ones."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.project.publishing import Destination
from sqlmesh_like.publish.database import DatabaseStore
from sqlmesh_like.publish.duckdb_file import DuckDBStore
from sqlmesh_like.publish.parquet_file import ParquetStore
from sqlmesh_like.publish.store import KEY_COLUMN, Published
from tests.levels import parametrize
from tests.published import Killed, Place, Row, Table, publish_killed, publish_rounds, rounds, row, send


def sqlite_place(root: Path) -> Place:
    path = root / "serving.sqlite"

    def read() -> list[Row]:
        with sqlite3.connect(path) as db:
            cursor = db.execute("select * from t")
            names = [column[0] for column in cursor.description]
            return [tuple(v for n, v in zip(names, r, strict=True) if n != KEY_COLUMN) for r in cursor]

    def spell(values: Row) -> Row:
        if len(values) < 10:
            return values
        return (*map(_sqlite, values),)

    return Place(lambda: DatabaseStore(Destination("bi", "url", f"sqlite:///{path}")), read, spell)


def _sqlite(value: Any) -> object:
    match value:
        case bool():
            return int(value)
        case list():
            return json.dumps(value, ensure_ascii=False)
    if hasattr(value, "as_tuple"):
        return str(value)
    if hasattr(value, "hour"):
        return value.replace(tzinfo=None).isoformat(" ")
    return value.isoformat() if hasattr(value, "isoformat") else value


def duckdb_place(root: Path) -> Place:
    path = root / "serving.duckdb"

    def read() -> list[Row]:
        with duckdb.connect(str(path), read_only=True) as db:
            db.execute("set timezone = 'UTC'")
            return _arrow(db.sql(f"select * exclude ({KEY_COLUMN}) from shop.t").to_arrow_table())

    return Place(lambda: DuckDBStore(Destination("file", "duckdb", str(path), "shop")), read)


def parquet_place(root: Path) -> Place:
    def read() -> list[Row]:
        return _arrow(parquet.ParquetFile(root / "out" / "t.parquet").read().drop_columns([KEY_COLUMN]))

    return Place(lambda: ParquetStore(Destination("out", "parquet", str(root / "out"))), read)


def _arrow(table: Any) -> list[Row]:
    def plain(value: Any) -> object:
        return value.astimezone(UTC) if hasattr(value, "hour") else value

    return [tuple(map(plain, each.values())) for each in table.to_pylist()]


PLACES = {"sqlite": sqlite_place, "duckdb": duckdb_place, "parquet": parquet_place}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](tmp_path)


def dying(table: Table, batches: int) -> Table:
    """The same table; whoever reads this many batches of it is killed."""
    real = table._export

    def export(whole: bool, rows: Any) -> Any:
        made = real(whole, rows)

        def read() -> Iterator[Any]:
            for number, batch in enumerate(made.batches()):
                if number == batches:
                    raise Killed
                yield batch
            raise Killed

        return replace(made, batches=read)

    fake = replace(table)
    object.__setattr__(fake, "_export", export)
    return fake


@pytest.mark.checklist(80)
def test_a_place_shows_the_table_after_each_round(place: Place) -> None:
    publish_rounds(place)


@parametrize("name", suite=["sqlite", "parquet"], release=["duckdb"])
def test_rows_stay_as_they_were_where_reading_stops_half_way(name: str, tmp_path: Path) -> None:
    place = PLACES[name](tmp_path)
    before: list[list[Row]] = []

    def kill(table: Table) -> None:
        for batches in (0, 1, 9):
            with pytest.raises((Killed, NodeError)):
                send(place.open(), dying(table, batches))
            if before:
                assert sorted(place.rows(), key=repr) == before[-1]
        if len(table.commits) > 1:
            send(place.open(), table)
            before.append(sorted(place.rows(), key=repr))

    table = Table()
    for number, happen in enumerate(rounds()):
        happen(table)
        if number == 2:
            continue  # nothing changed: there are no batches to die in
        kill(table)
        send(place.open(), table)
        place.expect(table)
        before.append(sorted(place.rows(), key=repr))


def test_a_killed_statement_leaves_the_old_rows_or_the_new(tmp_path: Path) -> None:
    assert publish_killed(sqlite_place(tmp_path)) > 50


_CHILD = """
import os, signal, sys
from pathlib import Path
from dataclasses import replace
from tests.published import Table, row, send
from tests.unit.publish.test_stores import PLACES

place = PLACES[sys.argv[1]](Path(sys.argv[2]))
table = Table()
table.commit({"a": row(1)})
send(place.open(), table)
table.commit({"a": None, **{str(n): row(n) for n in range(9)}})
real = table._export
def export(whole, rows):
    made = real(whole, rows)
    def read():
        for number, batch in enumerate(made.batches()):
            if number == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch
    return replace(made, batches=read)
table._export = export
send(place.open(), table)
"""


@parametrize("name", suite=["duckdb"], release=["sqlite", "parquet"])
def test_a_process_that_is_killed_in_the_middle_loses_and_doubles_nothing(name: str, tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", _CHILD, name, str(tmp_path)], check=False, env={**os.environ})
    assert child.returncode == -signal.SIGKILL
    place, table = PLACES[name](tmp_path), Table()
    table.commit({"a": row(1)})
    place.expect(table)
    table.commit({"a": None, **{str(number): row(number) for number in range(9)}})
    send(place.open(), table)
    place.expect(table)


def test_a_table_that_nobody_published_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "serving.sqlite") as db:
        db.execute("create table t (id int)")
    with duckdb.connect(str(tmp_path / "serving.duckdb")) as file:
        file.execute("create schema shop; create table shop.t (id int)")
    (tmp_path / "out").mkdir()
    duckdb.sql(f"copy (select 1 as id) to '{tmp_path}/out/t.parquet'")
    for made in PLACES.values():
        with pytest.raises(NodeError, match=r"table t.* that no publication made"):
            made(tmp_path).open().read_published("t")


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_a_change_never_follows_another_commit_than_it_was_made_for(name: str, tmp_path: Path) -> None:
    place, table = PLACES[name](tmp_path), Table()
    table.commit({"a": row(1)})
    send(place.open(), table)
    table.commit({"a": row(2)})
    late, export = place.open().read_published("t"), table.since(1)
    send(place.open(), table)
    with pytest.raises(RetryableError, match="published by another process"):
        place.open().write("t", export, late, table.shown)
    place.expect(table)


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_a_table_that_was_dropped_or_altered_by_hand_is_sent_whole(name: str, tmp_path: Path) -> None:
    place, table = PLACES[name](tmp_path), Table()
    table.commit({"a": row(1), "b": row(2)})
    for statement in ("drop table t", "alter table t add column mine int"):
        send(place.open(), table)
        if name == "sqlite":
            with sqlite3.connect(tmp_path / "serving.sqlite") as db:
                db.execute(statement)
        else:
            with duckdb.connect(str(tmp_path / "serving.duckdb")) as file:
                file.execute(statement.replace("table t", "table shop.t"))
        published = place.open().read_published("t")
        assert published == replace(table.shown, frontier=None)
        send(place.open(), table)
        place.expect(table)


def test_what_a_database_says_names_no_value_and_no_password(tmp_path: Path) -> None:
    url = "postgresql+psycopg://me:hunter2@127.0.0.1:1/db"
    store = DatabaseStore(Destination("bi", "url", url))
    with pytest.raises(NodeError, match=r"bi: the database says: .*") as caught:
        store.read_published("t")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Destination("bi", "url", url))


def test_a_file_that_somebody_writes_to_is_an_error_that_says_so(tmp_path: Path) -> None:
    holder = "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(tmp_path / "serving.duckdb")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline()
        with pytest.raises(NodeError, match="lock") as caught:
            duckdb_place(tmp_path).open().read_published("t")
        child.communicate()
    assert caught.value.hint == "close what has the file open, then: sml publish"


def test_two_models_cannot_show_one_table(tmp_path: Path) -> None:
    place, table = sqlite_place(tmp_path), Table()
    table.commit({"a": row(1)})
    send(place.open(), table)
    assert place.open().read_published("t") == Published("model.shop.t", table.uri, "1", table.shown.columns)
