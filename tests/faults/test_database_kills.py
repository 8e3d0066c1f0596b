"""The engine that reads a database is killed anywhere: every event is spooled once, and in order."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sqlmesh_like.cdc.formats.message import ENDS, READS_AGAIN
from sqlmesh_like.cdc.sources.database import later_tables
from sqlmesh_like.cdc.sources.database.capture import DatabaseCapture
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.database.key_ranges import estimated_rows
from sqlmesh_like.cdc.sources.database.server import connect, tables_of
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import Location
from sqlmesh_like.project.nodes import DatabaseKind, DatabaseSettings, IngestSource, Source, Target
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.faults.calls import LIMIT
from tests.levels import count
from tests.services import mariadb, postgres
from tests.services.wanted import need
from tests.spark.ingest_lake import table

ROWS = 130_000
"""More than two segments hold."""
KILLS = count(2, 8, 30)
Run = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(params=["mysql", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[DatabaseSettings, Run]]:
    kind: DatabaseKind = request.param
    need(lambda: ensure_jars(engine_jars(kind)), mariadb.find_server if kind == "mysql" else postgres.find_server)
    (tmp_path / "server").mkdir()
    if kind == "mysql":
        with mariadb.mariadb(tmp_path / "server") as server, server.connect() as connection:

            def run(*statements: str) -> list[tuple[Any, ...]]:
                with connection.cursor() as cursor:
                    for statement in statements:
                        cursor.execute(statement)
                    return list(cursor.fetchall())

            run("create database shop", "use shop")
            yield DatabaseSettings(kind, "127.0.0.1", server.port, server.user, "shop"), run
        return
    with postgres.postgres(tmp_path / "server") as service:

        def run_there(*statements: str) -> list[tuple[Any, ...]]:
            answer = service.run(*statements)
            return [tuple(map(int, line.split("|"))) for line in answer.splitlines() if "|" in line]

        yield DatabaseSettings(kind, "127.0.0.1", service.port, service.user, "postgres"), run_there


def capture_of(settings: DatabaseSettings, root: Path, *names: str) -> DatabaseCapture:
    tables = tuple(table(name, database=settings.database) for name in ("k", *names))
    source = Source(
        "shop", "ods", IngestSource("debezium", database=settings), tables, "", Location("sources.yml", 1, 1)
    )
    return DatabaseCapture(SourcePaths(Target("p", "t", "spark", warehouse=str(root / "warehouse")), source))


def read(settings: DatabaseSettings, root: Path, until: Callable[[DatabaseCapture], bool] | None = None) -> bool:
    """Read to the end, unless the engine is killed as soon as something is the case; whether it came to the end."""
    capture = capture_of(settings, root)
    capture.prepare(None)
    if until is None:
        capture.read_to_end()
        capture.acknowledge([])
        capture.close()
        return True
    capture.follow()
    engine = capture._engine
    assert engine is not None
    while not until(capture):
        engine.require_running()
        time.sleep(0.01)
    os.kill(engine._process.pid, signal.SIGKILL)
    engine._process.wait()
    capture.close()
    return False


def spooled(root: Path) -> tuple[Counter[str], dict[int, int]]:
    """How often each event is there, and the rows that they leave."""
    events: Counter[str] = Counter()
    rows: dict[int, int] = {}
    for segment in sorted((root / "warehouse/_sml/database/shop/log").glob("*.gz")):
        with gzip.open(segment, "rt", encoding="utf-8") as lines:
            for line in lines:
                read = json.loads(line.split("\t")[0])
                event = read.get("payload", read)
                at = event["source"]
                if event.get(READS_AGAIN) == ENDS:
                    continue
                if event["op"] == "t":
                    rows = {key: n for key, n in rows.items() if key < 100}  # of the one table that is emptied
                    continue
                image = event["after"] or event["before"]
                identity = (at.get("file"), at.get("pos"), at.get("row"), at.get("lsn"), event["op"], image["id"])
                events[repr(identity)] += 1
                if event["op"] == "d":
                    del rows[image["id"]]
                else:
                    rows[image["id"]] = image["n"]
    return events, rows


def change(run: Run, dice: random.Random) -> None:
    statements = []
    for _ in range(40):
        key = dice.randrange(1, ROWS + 500)
        statements.append(
            f"delete from k where id = {key}" if dice.random() < 0.4 else f"update k set n = n + 1 where id = {key}"
        )
    statements.append("insert into k select max(id) + 1, 0 from k")
    # Statements without rows: the position of the log that is stored then is between two transactions.
    statements.insert(dice.randrange(40), f"create table t_{dice.randrange(10**9)} (n int)")
    if dice.random() < 0.7:
        statements.append(f"create table t_{dice.randrange(10**9)} (n int)")
    run(*statements)


def add_repairs(spool: Spool, settings: DatabaseSettings) -> None:
    """Add a row to the spool as a repair does, then half of another one, as if a kill had come in between."""
    source = {"db": settings.database, "table": "k"}
    payload = {"op": "r", "before": None, "after": {"id": -1, "n": 7}, "source": source}
    spool.append([json.dumps({"payload": payload}).encode() + b"\n"])
    offsets = spool.folder / "offsets"
    (offsets / f"{spool.newest + 1}").write_bytes((offsets / f"{spool.newest}").read_bytes())
    (spool.folder / "staging" / "added.part").write_bytes(b"half")


@pytest.mark.release
@pytest.mark.timeout(60 * (KILLS + 6))
def test_every_event_is_spooled_once(database: tuple[DatabaseSettings, Run], tmp_path: Path) -> None:
    settings, run = database
    dice = random.Random(20240501)
    run("create table k (id int primary key, n int)")
    numbers = f"seq_1_to_{ROWS}" if settings.kind == "mysql" else f"generate_series(1, {ROWS}) as seq"
    run(f"insert into k select seq, seq from {numbers}")
    staging = tmp_path / "warehouse/_sml/database/shop/staging"
    # In the middle of the snapshot, with rows that are gone before it begins again.
    read(settings, tmp_path, lambda _: any(staging.glob("*.gz")))
    run("delete from k where id <= 10")
    assert read(settings, tmp_path)
    events, rows = spooled(tmp_path)
    assert set(events.values()) == {1} and len(events) == ROWS - 10
    for kill in range(KILLS):
        change(run, dice)
        began, moment = time.monotonic(), dice.random() * 5
        if kill % 2:
            newest = capture_of(settings, tmp_path).spool.newest
            read(settings, tmp_path, lambda capture: capture.spool.newest > newest)  # noqa: B023
        else:
            read(settings, tmp_path, lambda _: time.monotonic() > began + moment)  # noqa: B023
    add_repairs(capture_of(settings, tmp_path).spool, settings)
    change(run, dice)
    assert read(settings, tmp_path)
    events, rows = spooled(tmp_path)
    assert set(events.values()) == {1}
    assert rows.pop(-1) == 7, "what a repair had added"
    assert sorted(rows.items()) == sorted(run("select id, n from k"))


class Killed(BaseException):
    """Ends a call where a kill would."""


def rows_and_reads(root: Path) -> tuple[dict[tuple[str, int], int], Counter[tuple[str, int]]]:
    """The rows that the spool's events leave, by table and id, and how often each was read apart from the log."""
    rows: dict[tuple[str, int], int] = {}
    reads: Counter[tuple[str, int]] = Counter()
    for segment in sorted((root / "warehouse/_sml/database/shop/log").glob("*.gz")):
        with gzip.open(segment, "rt", encoding="utf-8") as lines:
            for line in lines:
                event = json.loads(line.split("\t")[0])
                event = event.get("payload", event)
                image, name = event["after"] or event["before"], event["source"]["table"]
                if event.get(READS_AGAIN) == ENDS:
                    continue
                if event["op"] == "t":
                    rows = {known: n for known, n in rows.items() if known[0] != name}
                    continue
                key = name, int(image["name"][2:]) if "name" in image else image["id"]  # a delete has its key alone
                if event["op"] == "d":
                    rows.pop(key, None)
                else:
                    rows[key] = image["n"]
                    reads[key] += event["op"] == "r"
    return rows, reads


def ingest_log(settings: DatabaseSettings, root: Path) -> None:
    """As an ingestion reads a database."""
    capture = capture_of(settings, root)
    try:
        capture.prepare(None)
        capture.read_later_tables()
        capture.read_to_end()
    finally:
        capture.close()


@pytest.mark.release
def test_a_first_load_goes_on_with_the_range_that_it_was_at(
    database: tuple[DatabaseSettings, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`k` has three ranges, `k_text` two, `k_small` one; while they are read, rows change, move and go."""
    settings, run = database
    settings = replace(settings, tables=("k.*",), rows_per_query=4000)
    numbers = "seq_{}_to_{}" if settings.kind == "mysql" else "generate_series({}, {}) as seq"
    run(
        "create table k (id int, part int, n int, primary key (id, part))",
        f"insert into k select seq, 1, seq from {numbers.format(10_001, 20_000)}",
        "create table k_text (name varchar(20) primary key, id int, n int)",
        f"insert into k_text select concat('Ü ', seq), seq, 0 from {numbers.format(100_001, 107_000)}",
        "create table k_small (id int primary key, n int)",
        "insert into k_small values (1, 1)",
    )
    run("analyze table k" if settings.kind == "mysql" else "analyze k")
    with connect(settings) as db:
        table = next(each for each in tables_of(db, settings) if each.name == "k")
        assert (estimated_rows(db, table) or 0) > 5000
    changes = iter([
        ("update k set n = -1 where id = 10001", "delete from k where id = 10002"),
        ("update k set id = 1 where id = 19999", "update k set id = 30000 where id = 10003"),
        ("insert into k values (2, 1, 2), (40000, 1, 4)", "update k_small set n = 2", "delete from k where id = 10700"),
        ("update k_text set n = 7 where id < 100010", "delete from k_text where id > 106990"),
    ])  # fmt: skip
    at = {"database.range": 0, "database.added": 0}

    def end_here(name: str) -> None:
        at[name] = at.get(name, 0) - 1
        if at[name] == 0:
            raise Killed

    monkeypatch.setattr(later_tables, "fault_point", end_here)
    monkeypatch.setattr("sqlmesh_like.cdc.sources.database.spool.fault_point", end_here)
    for kill in (*[{"database.range": 1}] * 4, {"database.added": 4}):
        at.update(kill)
        with pytest.raises(Killed):
            ingest_log(settings, tmp_path)
        run(*next(changes, ("update k_small set n = 7",)))
    assert {name for name, _ in rows_and_reads(tmp_path)[0]} == {"k", "k_small"}, (
        "whole tables, or what is left of them"
    )
    record = json.loads((tmp_path / "warehouse/_sml/database/shop/tables.json").read_text("utf-8"))
    assert any(name.endswith("k") for name in record["outdated"]), (
        "what the lake has goes, should its changes be missed"
    )
    ingest_log(settings, tmp_path)
    run("update k set n = 0 where id = 15000", "delete from k_text where id = 100020")
    ingest_log(settings, tmp_path)
    rows, reads = rows_and_reads(tmp_path)
    stored = {(name, key): n for name in ("k", "k_text", "k_small") for key, n in run(f"select id, n from {name}")}
    assert rows == stored
    assert max(n for (name, _), n in reads.items() if name != "k_small") == 1, "no range was read twice"
    assert sum(reads.values()) > 16_000


@pytest.mark.release
@pytest.mark.parametrize("database", ["postgresql", "mysql"], indirect=True)
def test_tables_that_come_while_a_database_is_followed_are_read(
    database: tuple[DatabaseSettings, Run], tmp_path: Path
) -> None:
    settings, run = database
    run("create table k (id int primary key, n int)", "insert into k values (1, 1)")
    settings = replace(settings, tables=("k.*",), rows_per_query=1)  # the first load, too, has a part that comes later
    capture = capture_of(settings, tmp_path)
    capture.prepare(None)
    capture.follow()
    try:
        run("create table k_later (id int primary key, n int)", "insert into k_later values (100, 7)")
        capture._next_listing = 0.0
        follow(capture, tmp_path, {1: 1, 100: 7})
        assert capture._engine is not None, "one that is told of the new table"
        run("update k_later set n = 8", "insert into k values (2, 2)")
        follow(capture, tmp_path, {1: 1, 2: 2, 100: 8})
        run(
            "create table loaded (id int primary key, n int)",
            "insert into loaded values (200, 9)",
            "alter table k_later rename to former",
            "alter table loaded rename to k_later",
        )
        capture._next_listing = 0.0
        follow(capture, tmp_path, {1: 1, 2: 2, 200: 9})
    finally:
        capture.close()


@pytest.mark.release
@pytest.mark.parametrize("database", ["mysql"], indirect=True)
def test_rows_that_foreign_keys_change_while_a_database_is_followed_are_read(
    database: tuple[DatabaseSettings, Run], tmp_path: Path
) -> None:
    """No table of the lake is there yet: what is known of these rows is in the spool."""
    settings, run = database
    run(
        "create table k (id int primary key, n int)",
        "create table child (id int primary key, n int, foreign key (n) references k (id) on delete cascade)",
        "insert into k values (1, 1), (2, 2), (3, 3)",
        "insert into child values (100, 1), (200, 2), (300, 3)",
    )
    capture = capture_of(settings, tmp_path, "child")
    capture.prepare(None)
    capture.read_to_end()
    capture.close()
    assert spooled(tmp_path)[1] == {1: 1, 2: 2, 3: 3, 100: 1, 200: 2, 300: 3}
    capture.prepare(None)
    capture.follow()
    try:
        run("delete from k where id = 1", "insert into child values (201, 2)")
        follow(capture, tmp_path, {2: 2, 3: 3, 200: 2, 201: 2, 300: 3})
        run("delete from k where id = 2", "insert into k values (4, 4)")
        follow(capture, tmp_path, {3: 3, 4: 4, 300: 3})
        # A key that was added meanwhile acts too.
        run(
            "create table other (id int primary key, n int)",
            "alter table child drop foreign key child_ibfk_1",
            "alter table child add foreign key (n) references k (id) on delete set null",
            "delete from k where id = 3",
        )
        follow(capture, tmp_path, {4: 4, 300: None})
    finally:
        capture.close()


@pytest.mark.release
@pytest.mark.parametrize("database", ["mysql"], indirect=True)
def test_rows_that_the_log_has_as_statements_while_a_database_is_followed_are_read(
    database: tuple[DatabaseSettings, Run], tmp_path: Path
) -> None:
    settings, run = database
    run(
        "create table k (id int primary key, n int)",
        "create table beside (id int primary key, n int)",
        "insert into k values (101, 1), (102, 2)",
    )
    capture = capture_of(replace(settings, tables=("k",)), tmp_path)
    capture.prepare(None)
    capture.follow()
    try:
        follow(capture, tmp_path, {101: 1, 102: 2})
        run("set session binlog_format = 'STATEMENT'", "insert into beside values (1, 1)", "update beside set n = 2")
        run("set session binlog_format = 'ROW'", "insert into k values (103, 3)")
        engine = capture._engine
        follow(capture, tmp_path, {101: 1, 102: 2, 103: 3})
        capture.keep_running()
        assert capture._engine is engine, "statements about other tables do not end it"
        run(
            "set session binlog_format = 'STATEMENT'",
            "update k set n = 7 where id = 101",
            "delete from k where id = 102",
        )
        follow(capture, tmp_path, {101: 7, 103: 3})
        run("set session binlog_format = 'ROW'", "xa start 'x'", "update k set n = 9 where id = 103", "xa end 'x'")
        run("xa prepare 'x'")
        follow(capture, tmp_path, {101: 7, 103: 9})
        run("xa rollback 'x'")
        follow(capture, tmp_path, {101: 7, 103: 3})
    finally:
        capture.close()


def follow(capture: DatabaseCapture, root: Path, wanted: Mapping[int, int | None]) -> None:
    """Follow the database until the spool's events leave these rows."""
    limit = time.monotonic() + LIMIT
    while (rows := spooled(root)[1]) != wanted:
        assert time.monotonic() < limit, (rows, wanted)
        capture.keep_running()
        time.sleep(0.5)
    while capture._engine is None:
        capture.keep_running()
