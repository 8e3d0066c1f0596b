"""After a statement that changes stored values without events, ODS has them as the database does."""

from __future__ import annotations

import datetime
import gzip
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.sources.database.capture import DatabaseCapture
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.database.server import connect
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import DatabaseSettings
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.services import mariadb, postgres
from tests.services.wanted import need
from tests.spark.cdc.test_database import compared, ingest_until_killed, lake_of, run
from tests.spark.ingest_lake import Lake, table


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mariadb.Server]:
    need(mariadb.find_server, lambda: ensure_jars(engine_jars("mysql")))
    with mariadb.mariadb(tmp_path_factory.mktemp("changes")) as service:
        yield service


@pytest.fixture(scope="module")
def pg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    need(postgres.find_server, lambda: ensure_jars(engine_jars("postgresql")))
    with postgres.postgres(tmp_path_factory.mktemp("changes_pg")) as service:
        yield service


def plain(value: object) -> str:
    """A value as a text that is the same for all types that hold it."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, bool | int | Decimal):
        return format(Decimal(value).normalize(), "f")
    text = str(value)
    return plain(Decimal(text)) if re.fullmatch(r"-?\d+(\.\d+)?", text) else text


def require_same_rows(lake: Lake, name: str) -> None:
    """Each row of the database is in the lake, with the value of each column, and no other row is.

    A column that came without values is not in the lake before an event has it.
    """
    _, _, source = lake.declared()
    with connect(database_of(source)) as db:
        result = db.execute(sa.text(f"select * from {name}"))
        columns = list(result.keys())
        rows = [list(row) for row in result]
    if name == "generated":
        assert "g" not in lake.types(name) and columns.pop() == "g"
    known = lake.types(name)
    for index, column in enumerate(columns):
        assert column in known or all(row[index] is None for row in rows), (name, column)
    shared = [index for index, column in enumerate(columns) if column in known]
    wanted = sorted([plain(row[index]) for index in shared] for row in rows)
    stored = lake.rows(name, *(columns[index] for index in shared))
    assert sorted([plain(value) for value in row] for row in stored) == wanted, name


def read_again(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The tables that were read as a whole since this was asked last, by their names."""
    names = {name for text in caplog.messages for name in re.sub("reading all rows of ", "", text).split(", ")
             if text.startswith("reading all rows of ")}  # fmt: skip
    caplog.clear()
    return {name.removeprefix("public.") for name in names}


def check(lake: Lake, caplog: pytest.LogCaptureFixture, again: set[str]) -> None:
    """Ingest: these tables are read again, all have the rows of the database, and nothing is left to read."""
    caplog.clear()
    report = lake.run()
    assert [(each.table, each.error) for each in report.tables if each.error] == []
    assert report.dead_letters == 0, report.first_dead_letter
    assert read_again(caplog) == again
    for each in compared(lake):
        if each.table.name != "history":  # it has rows that the database lacks
            assert each.status in ("pass", "warn") and (each.unread, each.examples) == (0, ()), each
    assert lake.run().events == 0 and read_again(caplog) == set()


REWRITING = {
    "rounds": ("modify d decimal(10,1)",),
    "cut": ("change v v varchar(2)",),
    "required": ("modify v varchar(20) not null",),
    "texts": ("modify d varchar(30)",),
    "renamed": ("rename column v to w",),
    "named": ("change column v w varchar(30)",),
    "latin": ("convert to character set latin1",),
    "labelled": ("modify e enum('b')",),
    "zero": ("add n int not null",),
    "clock": ("add at datetime default current_timestamp",),
    "unique_text": ("add u char(36) default uuid()",),
    "computed_once": ("add g int as (id * 2) stored",),
    "computed": ("add g int as (id * 2) virtual",),
    "numbered": ("add k int auto_increment unique",),
    "expression": ("add x int default (1 + 1)",),
    "several": ("add index (v), modify d decimal(12,2), drop column e",),
    "instead": ("drop v, add v varchar(20)",),
    "twice": ("drop v", "add v varchar(20)"),
    "later": ("add c int default 4", "alter c set default 5"),
    "never": ("add c int", "alter c set default 5"),
}
"""Clauses for tables of these names, after which MariaDB has other values than its events said."""
KEEPING = {
    "constant": ("add c int not null default 4",),
    "constants": ("add c decimal(9,2) default 1.50, add t varchar(9) not null default 'new'",),
    "moments": ("add at datetime(3) not null default '2024-02-03 04:05:06.125', add day date default '2024-02-03'",),
    "nothing": ("add c int", "add e2 varchar(9) null default null after v"),
    "indexed": ("add index (v), add unique (id, v)", "comment = 'x', force"),
    "wider": ("modify v varchar(40), modify id bigint, modify e enum('a','b','c'), modify d decimal(12,3)",),
    "defaults": ("alter v set default 'x'", "alter v drop default"),
    "dropped": ("drop column d",),
}


@pytest.mark.release
@pytest.mark.timeout(900)
def test_values_that_statements_of_mariadb_change_are_read_again(
    server: mariadb.Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    clauses = {**REWRITING, **KEEPING}
    kept = ("history", "soft")
    run(
        server,
        "create database changes",
        "use changes",
        *(
            f"create table {name} (id int primary key, v varchar(20), d decimal(10,3), e enum('a','b'))"
            for name in (*clauses, *kept)
        ),
        *(
            f"insert into {name} values (1, 'abc', 1.255, 'a'), (2, null, 2.5, 'b'), (3, 'é語', 0, null)"
            for name in (*clauses, *kept)
        ),
    )
    lake = lake_of(server, tmp_path, spark, "changes", *clauses)
    lake.tables = (
        *lake.tables,
        table("history", database="changes", deletes="retention"),
        table("soft", database="changes", deletes="soft"),
    )
    assert not lake.run().failed
    for name in kept:
        run(server, f"delete from changes.{name} where id = 3")
    assert not lake.run().failed
    run(
        server,
        "use changes",
        "set sql_mode = ''",  # as servers of old are: what does not fit is cut
        *(
            text
            for name, own in {
                **clauses,
                **dict.fromkeys(kept, ("modify d decimal(10,1), rename column v to w",)),
            }.items()
            for text in (
                f"insert into {name} (id, v, d) values (4, 'early', 9.999)",
                f"update {name} set v = 'earlier' where id = 2" if name != "required" else f"update {name} set d = 7",
                *(f"alter table {name} {clause}" for clause in own),
            )
        ),
    )
    check(lake, caplog, {*REWRITING, *kept})
    for name in clauses:
        if name not in ("constant", "constants", "moments"):  # the next event has their new columns
            require_same_rows(lake, name)
    check_kept(lake)
    added = (f"insert into {name} (id) values (9)" for name in clauses if name != "required")
    run(server, "use changes", "set sql_mode = ''", *added)
    check(lake, caplog, set())
    for name in clauses:
        require_same_rows(lake, name)
    # Duplicates go without a word; and what has no key would be there twice.
    run(
        server,
        "use changes",
        "create table entry (n int, d decimal(10,3))",
        "insert into entry values (1, 1.255), (1, 1.255)",
        "insert into indexed values (10, 'x', 1, null), (11, 'y', 1, null)",
    )
    lake.tables = (*lake.tables, table("entry", database="changes", primary_key=()))
    assert not lake.run().failed
    run(server, "use changes", "alter ignore table indexed add unique (d)", "alter table entry modify d decimal(10,1)")
    assert not lake.run().failed and {"indexed", "entry"} <= read_again(caplog)
    for name in ("indexed", "entry"):
        require_same_rows(lake, name)


def check_kept(lake: Lake) -> None:
    """Rows that the database has deleted are there as before, and only these."""
    rows = {row[0]: row[1:] for row in lake.rows("history", "id", "v", "w", "d")}
    assert {key: (v, w) for key, (v, w, _) in rows.items()} == {
        1: (None, "abc"), 2: (None, "earlier"), 3: ("é語", None), 4: (None, "early"),
    }  # fmt: skip
    assert [rows[key][-1] for key in (1, 3, 4)] == [Decimal("1.3"), 0, 10]
    assert [(key, gone) for key, gone in lake.rows("soft", "id", "_sml_deleted")] == [
        (1, False), (2, False), (3, True), (4, False),
    ]  # fmt: skip
    assert dict(lake.rows("soft", "id", "w"))[2] == "earlier"


def killed_lake(server: mariadb.Server, root: Path, spark: SparkSession) -> Lake:
    return lake_of(server, root, spark, "stopped", "item", "other")


@pytest.mark.release
@pytest.mark.timeout(900)
def test_a_table_that_must_be_read_again_is_not_forgotten_by_a_kill(
    server: mariadb.Server, tmp_path: Path, spark: SparkSession
) -> None:
    run(
        server,
        "create database stopped",
        "use stopped",
        *(f"create table {name} (id int primary key, d decimal(10,3))" for name in ("item", "other")),
        *(f"insert into {name} select seq, seq / 7 from seq_1_to_20" for name in ("item", "other")),
    )
    lake = killed_lake(server, tmp_path, spark)
    assert not lake.run().failed
    steps = ("database.added:1", "database.added:2", "database.read_again", "database.spooled:1", "ingest.table:1")
    for scale, step in zip((7, 6, 5, 4, 2), steps, strict=True):
        run(
            server,
            "use stopped",
            f"update item set d = d + 1 where id % {scale} = 0",
            f"alter table item modify d decimal(12,{scale})",
            f"alter table item modify d decimal(12,{scale - 1})",
            f"delete from item where id = {scale}",
        )
        ingest_until_killed(step, server, tmp_path, "killed_lake", module="test_schema_changes")
    assert lake.run().dead_letters == 0
    require_same_rows(lake, "item")
    require_same_rows(lake, "other")
    assert lake.run().events == 0


@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize("follows", [False, True])
def test_events_before_a_statement_are_spooled_before_the_table_is_read_again(
    server: mariadb.Server, tmp_path: Path, follows: bool
) -> None:
    """The engine notes a statement as it meets it, and may be killed before the events that precede it are spooled."""
    database = f"noted_{follows}"
    run(
        server,
        f"create database {database}",
        f"use {database}",
        "create table item (id int primary key, d decimal(10,3))",
        "insert into item values (1, 0)",
    )
    settings = DatabaseSettings("mysql", "127.0.0.1", server.port, server.user, database)
    lake = Lake(None, tmp_path, (table("item", database=database),), {"files": None, "database": settings})  # type: ignore[arg-type]
    place = SourcePaths(*lake.declared()[1:])
    folder, before = spool_of(place).folder, tmp_path / "before"
    capture(place)
    shutil.copytree(folder, before)
    run(server, f"use {database}", "update item set d = 1.255", "alter table item modify d decimal(10,1)")
    capture(place)
    assert operations(folder) == ["r", "u", "t", "r"]
    noted = (folder / "schema_history").read_bytes()
    shutil.rmtree(folder)
    shutil.copytree(before, folder)
    (folder / "schema_history").write_bytes(noted)
    capture(place, follows=follows)
    assert operations(folder) == ["r", "u", "t", "r"]


@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize("follows", [False, True])
def test_events_before_columns_of_postgresql_changed_are_spooled_before_the_table_is_read_again(
    pg: postgres.Server, tmp_path: Path, follows: bool
) -> None:
    name = f"noted_{follows}".lower()
    pg.run(f"create table {name} (id int primary key, v text)", f"insert into {name} values (1, 'a')")
    place = SourcePaths(*lake_of_postgres(pg, tmp_path, None, name).declared()[1:])
    folder = spool_of(place).folder
    capture(place)
    pg.run(f"update {name} set v = 'b'", f"alter table {name} alter v type text using upper(v)")
    capture(place, follows=follows)
    assert operations(folder) == ["r", "u", "t", "r"]
    capture(place, follows=follows)
    assert operations(folder) == ["r", "u", "t", "r"]


def capture(place: SourcePaths, *, follows: bool = False) -> None:
    """Spool what the database has now; with `follows`, as far as that is done before it is followed."""
    engine = DatabaseCapture(place)
    try:
        engine.prepare(None)
        engine.read_later_tables()
        if follows:
            engine.follow()
        else:
            engine.read_to_end()
    finally:
        engine.close()


def operations(folder: Path) -> list[str]:
    """The operations of all events of a spool, in order."""
    lines = [
        json.loads(line.partition(b"\t")[0])
        for path in sorted((folder / "log").glob("*.gz"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    return [event.get("payload", event)["op"] for event in lines]


PG_REWRITING = {
    "typed": ("alter {} alter d type numeric(10,1)",),
    "upper": ("alter {} alter v type text using upper(v)",),
    "upper_only": ("alter {} alter v type varchar(20) using upper(v)",),  # the type is the same
    "volatile_default": ("alter {} add r double precision default random()",),
    "volatile_once": ("alter {} add r double precision default random()", "alter {} alter r drop default"),
    "numbered": ("alter {} add s serial",),
    "identified": ("alter {} add s int generated always as identity",),
    "clock": ("alter {} add at timestamptz default now()",),
    "renamed": ("alter {} rename v to w",),
    "instead": ("alter {} drop v", "alter {} add v varchar(20)"),
    "later": ("alter {} add c int default 4", "alter {} alter c set default 5"),
    "never": ("alter {} add c int", "alter {} alter c set default 5"),
    "labelled": ("alter type mood rename value 'a' to 'z'",),
    "emptied_and_typed": ("truncate {}", "insert into {} values (1, 'x', 1.55)", "alter {} alter d type numeric(9,1)"),
    "parts": ("alter {} alter v type text using upper(v)",),
}
"""Statements about tables of these names, after which PostgreSQL has other values than its events said."""
PG_KEEPING = {
    "generated": ("alter {} add g int generated always as (id * 2) stored",),  # PostgreSQL does not log it
    "constant": ("alter {} add c int not null default 4, add t text default 'x y', add b boolean default true",),
    "nothing": ("alter {} add c int",),
    "vacuumed": ("vacuum full {}", "analyze {}"),
    "truncated": ("truncate {}", "insert into {} values (1, 'again', 1)"),
    "wider": ("alter {} alter v type varchar(40), alter d type numeric(12,3)", "alter {} alter v type text"),
    "indexed": ("create index on {} (v)", "alter {} add unique (v)", "alter {} alter v set default 'x'"),
    "dropped": ("alter {} drop d",),
    "more_labels": ("alter type kinds add value 'c'",),
}


def statements_of(cases: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        text if text.startswith("alter type") else re.sub(r"^alter (?=\{)", "alter table ", text).format(name)
        for name, own in cases.items()
        for text in (
            "insert into {} (id, v) values (4, 'early')",
            "update {} set v = 'earlier' where id = 2",
            *own,
        )
    ]


@pytest.mark.release
@pytest.mark.timeout(900)
def test_values_that_statements_of_postgresql_change_are_read_again(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    cases = {**PG_REWRITING, **PG_KEEPING}
    pg.run(
        "create type mood as enum ('a', 'b')",
        "create type kinds as enum ('a', 'b')",
        *(
            f"create table {name} (id int primary key, v varchar(20), d numeric(10,3))"
            for name in cases if name != "parts"
        ),
        "create table parts (id int primary key, v varchar(20), d numeric(10,3)) partition by range (id)",
        "create table parts_1 partition of parts for values from (0) to (100)",
        "alter table labelled add m mood default 'a'",
        "alter table more_labels add m kinds default 'a'",
        *(f"insert into {name} values (1, 'abc', 1.255), (2, null, 2.5)" for name in cases),
    )  # fmt: skip
    lake = lake_of_postgres(pg, tmp_path, spark, *cases)
    assert not lake.run().failed
    pg.run(*statements_of(cases))
    check(lake, caplog, {*PG_REWRITING})
    for name in cases:
        if name != "constant":  # the next event has its new columns
            require_same_rows(lake, name)
    pg.run(*(f"insert into {name} (id) values (9)" for name in cases))
    check(lake, caplog, set())
    for name in cases:
        require_same_rows(lake, name)
    # A lake of an earlier version has no record of columns: it begins with those that are there.
    record = next((tmp_path / "warehouse/_sml/database").glob("*/tables.json"))
    record.write_text(json.dumps({name: each for name, each in json.loads(record.read_text()).items()
                                  if name != "layouts"}))  # fmt: skip
    pg.run("alter table typed alter d type numeric(10,0)")
    assert lake.run().events == 0 and read_again(caplog) == set()
    pg.run("alter table wider alter v type text using upper(v)", "alter table generated alter g drop expression")
    check(lake, caplog, {"wider", "generated"})
    require_same_rows(lake, "wider")
    assert lake.rows("generated", "id", "g") == [(1, 2), (2, 4), (4, 8), (9, 18)]


@pytest.mark.release
@pytest.mark.timeout(300)
def test_a_table_none_of_whose_rows_fit_its_declared_types_any_more_keeps_its_rows(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    pg.run(
        "create table typed_here (id int primary key, v int)",
        "insert into typed_here values (1, 10), (2, 20)",
        "create table beside (id int primary key, v int)",
        "insert into beside values (1, 1)",
    )
    lake = lake_of_postgres(pg, tmp_path, spark, "beside")
    lake.tables += (table("typed_here", database="postgres", columns={"id": "int", "v": "int"}),)
    assert not lake.run().failed
    pg.run(
        "alter table typed_here alter v type bigint using v + 5000000000",
        "insert into typed_here values (3, 30000000000)",
        "insert into beside values (2, 2)",
    )
    (failed,) = (each for each in lake.run().tables if each.error)
    assert str(failed.table) == "ods.typed_here"
    assert "is read again, and none of" in str(failed.error)
    assert lake.rows("typed_here", "id", "v") == [(1, 10), (2, 20)], "its rows stay as they were"
    assert lake.rows("beside", "id", "v") == [(1, 1), (2, 2)], "the others go on"
    lake.tables = (lake.tables[0], table("typed_here", database="postgres", columns={"id": "int", "v": "bigint"}))
    assert not lake.run().failed
    require_same_rows(lake, "typed_here")
    require_same_rows(lake, "beside")
    # Where only some rows do not fit, these stay as they were until their dead letters are replayed.
    lake.tables = (lake.tables[0], table("typed_here", database="postgres", columns={"id": "int", "v": "bigint"}))
    pg.run(
        "alter table typed_here alter v type numeric using case id when 1 then 1 else v + 0.5 end",
        "delete from typed_here where id = 3",
    )
    report = lake.run()
    assert not report.failed and report.dead_letters == 1
    assert lake.rows("typed_here", "id", "v") == [(1, 1), (2, 5000000020)]


@pytest.mark.release
@pytest.mark.timeout(300)
def test_a_table_of_postgresql_that_was_not_logged_with_its_key_for_a_while_is_read_again(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Its deletes have no key then, and an update of the key does not say which row has it no more."""
    pg.run(
        "create table indexed_by (id int primary key, u int not null unique, v text)",
        "insert into indexed_by select n, n * 10, 'a' from generate_series(1, 6) n",
        "create table other_key (id int primary key, u int not null unique)",
        "insert into other_key values (1, 1), (2, 2)",
        *(
            text.format(name)
            for name in ("untouched", "full_once")
            for text in (
                "create table {} (id int primary key, v int not null unique)",
                "insert into {} values (1, 1), (2, 2)",
            )
        ),
    )
    lake = lake_of_postgres(pg, tmp_path, spark, "indexed_by", "other_key", "untouched", "full_once")
    assert not lake.run().failed
    pg.run(
        "alter table indexed_by replica identity using index indexed_by_u_key",
        "insert into indexed_by values (7, 70, 'a')",
        "delete from indexed_by where id in (2, 7)",
        "update indexed_by set id = 44 where id = 4",
    )
    with pytest.raises(MachineError, match="indexed_by logs u of a deleted row"):
        lake.run()
    pg.run("alter table indexed_by replica identity default", "update indexed_by set v = 'b' where id = 1")
    caplog.clear()
    report = lake.run()
    assert not report.failed and read_again(caplog) == {"indexed_by"}
    require_same_rows(lake, "indexed_by")
    assert lake.run().events == 0
    # Between two ingestions, by the columns of an index and of another primary key; what else is written of these.
    pg.run(
        "alter table indexed_by replica identity using index indexed_by_u_key",
        "delete from indexed_by where id = 3",
        "update indexed_by set id = 55 where id = 5",
        "alter table indexed_by replica identity default",
        "alter table other_key drop constraint other_key_pkey, add primary key (u)",
        "delete from other_key where id = 2",
        "alter table other_key drop constraint other_key_pkey, add primary key (id)",
        "create unique index concurrently of_both on untouched (id, v)",
        "reindex table concurrently untouched",
        "vacuum analyze untouched",
        "alter table full_once replica identity full",
        "update full_once set v = 5 where id = 1",
        "delete from full_once where id = 2",
        "alter table full_once replica identity default",
        "cluster full_once using full_once_pkey",
    )
    check(lake, caplog, {"indexed_by", "other_key"})
    # With a key of its own in the lake, by FULL that was away for a while.
    pg.run("alter table other_key replica identity full", "insert into other_key values (3, 3), (4, 4)")
    own = replace(lake.tables[1].ingest, primary_key=("u",))
    shutil.rmtree(lake.uri("other_key"))
    lake.tables = (lake.tables[0], replace(lake.tables[1], ingest=own), *lake.tables[2:])
    assert not lake.run(start="earliest").failed
    pg.run(
        "alter table other_key replica identity default",
        "delete from other_key where u = 3",  # Debezium says that it had the key 0
        "alter table other_key replica identity full",
        "insert into other_key values (5, 5)",
    )
    check(lake, caplog, {"other_key"})
    require_same_rows(lake, "other_key")


@pytest.mark.release
@pytest.mark.timeout(300)
def test_tables_of_a_binary_log_that_lacked_rows_for_a_while_are_read_again(
    server: mariadb.Server, tmp_path: Path, spark: SparkSession
) -> None:
    run(
        server,
        "create database partly",
        "create table partly.item (id int primary key, v int, w int)",
        "insert into partly.item values (1, 1, 1), (2, 2, 2), (3, 3, 3)",
    )
    lake = lake_of(server, tmp_path, spark, "partly", "item")
    assert not lake.run().failed
    run(server, "set global binlog_format = 'STATEMENT'")
    run(server, "update partly.item set v = 10 where id = 1", "delete from partly.item where id = 2")
    with pytest.raises(MachineError, match="binlog_format is STATEMENT"):
        lake.run()
    run(server, "set global binlog_format = 'ROW'")
    run(server, "update partly.item set w = 30 where id = 3")
    assert not lake.run().failed
    assert lake.rows("item") == [(1, 10, 1), (3, 3, 30)]


@pytest.mark.release
@pytest.mark.timeout(300)
def test_tables_whose_changes_a_session_of_mariadb_logs_as_statements_are_read_again(
    server: mariadb.Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    run(
        server,
        "create database stated",
        *(f"create table stated.{name} (id int primary key, v int)" for name in ("item", "child", "other")),
        *(f"insert into stated.{name} values (1, 1), (2, 2)" for name in ("item", "child", "other")),
        "alter table stated.child add foreign key (v) references stated.item (id) on delete cascade",
        "create table stated.unread (id int)",
    )
    lake = lake_of(server, tmp_path, spark, "stated", "item", "child", "other")
    assert not lake.run().failed
    own = "set session binlog_format = 'STATEMENT'"
    run(server, "use stated", own, "insert into unread select id from item", "update unread set id = 5")
    check(lake, caplog, set())
    run(server, "use stated", own, "delete from item where id = 1", "insert into `item` values (3, 3)")
    check(lake, caplog, {"item", "child"})  # its foreign key has acted, too
    run(server, "use stated", "update other set v = 4", own, "/* app */ update other set v = 5 where id = 1")
    check(lake, caplog, {"other"})
    run(server, "use stated", own, "replace into other values (2, 8)")
    check(lake, caplog, {"other"})
    loaded = tmp_path / "loaded.csv"
    loaded.write_text("7\t2\n")
    tmp_path.chmod(0o755)
    run(server, "use stated", own, f"load data infile '{loaded}' into table other")
    check(lake, caplog, {"item", "child", "other"})
    run(server, "use stated", "create view seen as select * from item", own, "update seen set v = 9")
    check(lake, caplog, {"item", "child", "other"})
    for name in ("item", "child", "other"):
        require_same_rows(lake, name)


@pytest.mark.release
@pytest.mark.timeout(300)
def test_rows_that_transactions_of_mariadb_take_back_go(
    server: mariadb.Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Its log has them where a temporary table was made, one without transactions was written, and before XA COMMIT."""
    run(
        server,
        "create database undone",
        *(f"create table undone.{name} (id int primary key, v int)" for name in ("item", "other")),
        "create table undone.plain (id int primary key) engine = MyISAM",
        "insert into undone.item values (1, 1), (2, 2), (3, 3)",
        "insert into undone.other values (9, 9)",
        "use undone",
        "xa start 'before'",
        "update other set v = 0",
        "insert into item values (4, 4)",
        "xa end 'before'",
        "xa prepare 'before'",
    )
    lake = lake_of(server, tmp_path, spark, "undone", "item", "other")
    assert not lake.run().failed
    assert lake.rows("item") == [(1, 1), (2, 2), (3, 3)]
    run(server, "xa commit 'before'")  # its rows are in the log from before the first load
    check(lake, caplog, {"item", "other"})
    require_same_rows(lake, "item")
    start = "start transaction"
    run(server, "use undone", start, "create temporary table t (n int)", "insert into item select 5, 5", "rollback")
    check(lake, caplog, {"item"})
    run(
        server,
        *("use undone", start, "insert into other values (1, 1)", "savepoint s", "update item set v = 0"),
        *("insert into plain select id from item", "rollback to savepoint s", "commit"),
    )
    check(lake, caplog, {"item", "other"})
    run(
        server,
        "use undone",
        "xa start 'kept'",
        "update item set v = 6 where id = 1",
        "xa end 'kept'",
        "xa prepare 'kept'",
    )
    assert lake.run().events == 1
    run(server, "xa commit 'kept'")
    check(lake, caplog, set())
    run(server, "use undone", "xa start 'gone'", "delete from item where id = 1", "xa end 'gone'", "xa prepare 'gone'")
    assert lake.run().events == 1
    run(server, "xa rollback 'gone'")
    check(lake, caplog, {"item"})
    for name in ("item", "other"):
        require_same_rows(lake, name)


def lake_of_postgres(pg: postgres.Server, root: Path, spark: SparkSession | None, *names: str) -> Lake:
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "postgres")
    tables = tuple(table(name, database="postgres") for name in names)
    return Lake(spark, root, tables, {"files": None, "database": settings})  # type: ignore[arg-type]


def killed_lake_of_postgres(server: mariadb.Server, root: Path, spark: SparkSession) -> Lake:
    return lake_of_postgres(postgres.Server(server.port), root, spark, "stopped")


@pytest.mark.release
@pytest.mark.timeout(900)
def test_a_table_of_postgresql_that_must_be_read_again_is_not_forgotten_by_a_kill(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    pg.run(
        "create table stopped (id int primary key, v text)",
        "insert into stopped select n, 'a' from generate_series(1, 20) n",
    )
    address = mariadb.Server(pg.port)
    lake = killed_lake_of_postgres(address, tmp_path, spark)
    assert not lake.run().failed
    for number, step in enumerate(("database.spooled:1", "database.added:1", "database.read_again", "ingest.table:1")):
        pg.run(
            f"update stopped set v = 'b{number}' where id % 3 = 0",
            "alter table stopped alter v type text using v || '.'",
            f"delete from stopped where id = {number + 1}",
            f"update stopped set v = 'c{number}' where id = 20",
        )
        ingest_until_killed(step, address, tmp_path, "killed_lake_of_postgres", module="test_schema_changes")
    assert lake.run().dead_letters == 0
    require_same_rows(lake, "stopped")
    assert lake.run().events == 0
