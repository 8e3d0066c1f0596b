"""What foreign keys of MariaDB do to rows is in ODS after `sml ingest`, though its log does not name these rows."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.sources.database.cascades import affected_rows, cascaded_rows
from sqlmesh_like.cdc.sources.database.cascades.read_again import ReadRows, read_again
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.fault_points import DATABASE_CASCADE_POINTS
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.services.mariadb import Server, find_server, mariadb
from tests.services.wanted import need
from tests.spark.cdc.test_database import ingest_until_killed, lake_of, require_equal, rows, run
from tests.spark.ingest_lake import Lake, table

TABLES = ("grp", "item", "part", "node", "label")
ROUNDS = int(os.environ.get("SML_CASCADE_ROUNDS", "8"))
SCHEMA = (
    "create table {0}.grp (id bigint unsigned primary key, code varchar(20) not null unique, n int)",
    "create table {0}.item (id int primary key, g bigint unsigned, code varchar(20), n int,"
    " foreign key (g) references {0}.grp (id) on delete cascade on update cascade,"
    " foreign key (code) references {0}.grp (code) on delete set null on update cascade)",
    # Its primary key begins with the parent's, as does what refers to it.
    "create table {0}.part (item int, line int, note varchar(20), primary key (item, line),"
    " foreign key (item) references {0}.item (id) on delete cascade on update cascade)",
    "create table {0}.label (id int primary key, item int, line int,"
    " foreign key (item, line) references {0}.part (item, line) on delete cascade on update cascade)",
    "create table {0}.node (id int primary key, up int, item int, n int,"
    " foreign key (up) references {0}.node (id) on delete cascade,"
    " foreign key (item) references {0}.item (id) on delete set null on update cascade)",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    need(find_server, lambda: ensure_jars(engine_jars("mysql")))
    with mariadb(tmp_path_factory.mktemp("cascades")) as service:
        yield service


def cascade_lake(server: Server, root: Path, spark: SparkSession, database: str = "cascades") -> Lake:
    lake = lake_of(server, root, spark, database, "grp", "item", "node", "label")
    lake.tables = (*lake.tables, table("part", database=database, primary_key=("item", "line")))
    return lake


def created(server: Server, database: str) -> None:
    run(server, f"create database {database}", *(each.format(database) for each in SCHEMA))


def check(lake: Lake, server: Server, database: str, *step: object) -> None:
    """Ingest; each table is as the database has it then."""
    report = lake.run()
    assert not report.failed and report.dead_letters == 0, step
    for name in TABLES:
        assert [tuple(map(str, row)) for row in lake.rows(name)] == [
            tuple(map(str, row)) for row in rows(server, f"{database}.{name}")
        ], (name, step)


@pytest.mark.release
@pytest.mark.timeout(1200)
def test_rows_that_foreign_keys_change_are_as_in_the_database(
    server: Server, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    created(server, "silent")
    run(
        server,
        "use silent",
        "insert into grp select seq, concat('c', seq), 0 from seq_1_to_9",
        "insert into item select seq, 1 + seq % 9, concat('C', 1 + seq % 9), 0 from seq_1_to_40",
        "insert into part select seq, 1, 'a' from seq_1_to_40",
        "insert into label select seq, seq, 1 from seq_1_to_40",
        "insert into node select seq, nullif(seq div 2, 0), seq, 0 from seq_1_to_30",
    )
    lake = cascade_lake(server, tmp_path, spark, "silent")
    check(lake, server, "silent", "snapshot")
    for step in (
        ("delete from grp where id = 1",),  # four levels
        ("update grp set code = 'new', n = 1 where id = 2", "update grp set id = 100 where id = 3"),
        ("delete from node where id = 2",),  # a tree
        (  # rows of the same batch, also such as the key brings back to life
            "insert into grp values (50, 'c50', 0)",
            "insert into item values (500, 50, 'c50', 0), (501, 50, null, 0)",
            "insert into part values (500, 1, 'x')",
            "insert into node values (500, 1, 500, 0), (501, 500, null, 0)",
            "delete from grp where id = 50",
            "insert into item values (500, 4, 'c4', 7)",
        ),
        ("delete from grp where id = 5", "update node set n = 9", "insert into item values (4, 6, 'c6', 1)"),
        ("update item set id = 1000 where id = 6", "delete from item where id = 1000"),
        (
            "update grp set id = 66 where id = 6",
            "insert into item values (66, 66, 'c7', 0)",
            "delete from grp where id = 66",
        ),
        ("replace into grp values (7, 'c7', 5)",),
        ("delete from item where id = 7", "insert into item values (7, 8, 'c8', 7)"),
    ):
        run(server, "use silent", *step)
        check(lake, server, "silent", *step)
        assert lake.run().events == 0
    monkeypatch.setattr(affected_rows, "MOST_KEYS", 0)
    run(server, "use silent", "delete from grp where id = 8")
    check(lake, server, "silent", "whole tables")
    require_equal(lake)


@pytest.mark.release
@pytest.mark.timeout(200 * 4)
def test_killed_while_such_rows_are_added_nothing_is_lost(server: Server, tmp_path: Path, spark: SparkSession) -> None:
    created(server, "cascades")
    run(
        server,
        "use cascades",
        "insert into grp select seq, concat('c', seq), 0 from seq_1_to_9",
        "insert into item select seq, 1 + seq % 9, null, 0 from seq_1_to_40",
        "insert into part select seq, 1, 'a' from seq_1_to_40",
        "insert into label select seq, seq, 1 from seq_1_to_40",
        "insert into node select seq, nullif(seq div 2, 0), seq, 0 from seq_1_to_30",
    )
    lake = cascade_lake(server, tmp_path, spark)
    assert not lake.run().failed
    for number, step in enumerate(("database.spooled", *DATABASE_CASCADE_POINTS, "ingest.table:2"), 1):
        run(server, f"delete from cascades.grp where id = {number}")
        ingest_until_killed(step, server, tmp_path, "cascade_lake", module="test_cascades")
    check(lake, server, "cascades", "killed")


@pytest.mark.release
@pytest.mark.timeout(900)
def test_tables_with_an_order_or_soft_deletes_and_parents_that_are_read_later(
    server: Server, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    run(
        server,
        "create database ranked",
        "use ranked",
        "create table grp (id int primary key, at datetime(6))",
        "create table item (id int primary key, g int, at datetime(6), foreign key (g) references grp (id)"
        " on delete cascade)",
        "create table soft (id int primary key, g int, foreign key (g) references grp (id) on delete cascade)",
        "create table far (id int primary key, g int, foreign key (g) references grp (id) on delete set null)",
        "insert into grp select seq, '2024-01-01' from seq_1_to_9",
        "insert into item select seq, seq, '2024-01-01' from seq_1_to_9",
        "insert into soft select seq, seq from seq_1_to_9",
        "insert into far select seq, seq from seq_1_to_9",
    )
    lake = lake_of(server, tmp_path, spark, "ranked", "far")
    lake.tables = (
        *lake.tables,
        table("item", database="ranked", order_by=("at",)),
        table("soft", database="ranked", deletes="soft"),
    )
    assert not lake.run().failed
    assert "far_ibfk_1 of far (ON DELETE SET NULL) changes rows with those of grp" in caplog.text
    run(server, "use ranked", "delete from grp where id = 1")
    assert lake.run().events == 0  # its parent is not read

    def check_all() -> None:
        assert lake.run().dead_letters == 0
        for name in ("far", "item"):
            assert lake.rows(name) == rows(server, f"ranked.{name}"), name
        present = spark.read.format("hudi").load(lake.uri("soft")).where("_sml_deleted is not true")
        assert sorted(map(tuple, present.select("id", "g").collect()), key=str) == rows(server, "ranked.soft")

    lake.tables = (*lake.tables, table("grp", database="ranked"))
    check_all()  # all that follows the parent is read again with it
    run(
        server,
        "use ranked",
        "insert into item values (20, 2, '2024-02-01')",
        "update item set at = '2024-03-01' where id = 3",
        "delete from grp where id in (2, 3)",
    )
    check_all()
    run(
        server,
        "use ranked",
        "insert into item values (2, 4, '2024-06-01')",
        "update item set g = 6, at = '2024-01-02' where id = 4",
        "delete from grp where id = 5",
    )
    check_all()
    # A spool without the record has not been looked at for such rows: these tables are read again.
    (Path(lake.warehouse) / "_sml/database/shop/cascades.json").unlink()
    run(server, "use ranked", "set sql_log_bin = 0", "delete from far where id = 9")
    check_all()
    assert lake.run().events == 0


@pytest.mark.release
@pytest.mark.timeout(300 + 60 * ROUNDS)
def test_random_changes_of_tables_with_foreign_keys(
    server: Server, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also such that come while rows are read again: before they are, and before the log is read on."""
    created(server, "walked")
    dice, lake = random.Random(20260501), cascade_lake(server, tmp_path, spark, "walked")
    run(server, "use walked", *(f"insert into walked.{each}" for each in (
        "grp select seq, concat('c', seq), 0 from seq_1_to_30",
        "item select seq, 1 + seq % 30, concat('c', 1 + seq * 7 % 30), 0 from seq_1_to_60",
        "part select seq, 1, 'a' from seq_1_to_60",
        "label select seq, seq, 1 from seq_1_to_60",
        "node select seq, nullif(seq div 2, 0), seq, 0 from seq_1_to_60",
    )))  # fmt: skip
    check(lake, server, "walked", "snapshot")
    done: list[str] = []

    def change(most: int) -> None:
        with server.connect("walked") as connection, connection.cursor() as cursor:
            for _ in range(dice.randint(1, most)):
                done.append(random_statement(dice))
                with suppress(pymysql.err.MySQLError):  # a key refuses it
                    cursor.execute(done[-1])

    def read_meanwhile(*arguments: Any) -> ReadRows:
        is_changing = done.count("meanwhile") < 2
        done.append("meanwhile")
        if is_changing:
            change(6)
        result = read_again(*arguments)
        if is_changing:
            change(6)
        return result

    monkeypatch.setattr(cascaded_rows, "read_again", read_meanwhile)
    for number in range(ROUNDS):
        done.clear()
        change(25)
        check(lake, server, "walked", number, *done)
    require_equal(lake)


def random_statement(dice: random.Random) -> str:
    """A change of one of the tables; those that a key refuses change nothing."""

    def ids() -> int:
        return dice.randint(1, 70)

    return dice.choices(
        (
            f"delete from grp where id = {ids()}",
            f"delete from item where id = {ids()}",
            f"delete from part where item = {ids()}",
            f"delete from node where id = {ids()}",
            f"update ignore grp set id = {ids()} where id = {ids()}",
            f"update ignore grp set code = 'C{ids()}' where id = {ids()}",
            f"update ignore item set id = {ids()} where id = {ids()}",
            f"update ignore item set g = {ids()}, n = n + 1 where id = {ids()}",
            f"update node set n = n + 1 where id > {ids()}",
            f"update ignore node set up = {ids()} where id = {ids()}",
            f"insert ignore into grp values ({ids()}, 'c{ids()}', 1)",
            f"insert ignore into item values ({ids()}, {ids()}, 'c{ids()}', 1)",
            f"insert ignore into part values ({ids()}, {dice.randint(1, 3)}, 'b')",
            f"insert ignore into label values ({ids()}, {ids()}, 1)",
            f"insert ignore into node values ({ids()}, {ids()}, {ids()}, 1)",
            f"replace into grp values ({ids()}, 'c{ids()}', 2)",
        ),
        (2, 2, 1, 2, 1, 1, 1, 2, 1, 1, 6, 12, 8, 6, 8, 1),
    )[0]
