"""A database without Kafka: its tables are in ODS after `sml ingest`, whatever was killed in between."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.sources.database import later_tables, row_snapshot
from sqlmesh_like.cdc.sources.database.capture import spool_log
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.repair import Repair, add_repair
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest, compare_tables
from sqlmesh_like.cdc.sources.database.connector_settings import wanted_tables
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.database.partitions import (
    UnreadPartitions,
    partitions_of,
    require_one_of_each,
    unread_partitions,
)
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables
from sqlmesh_like.cdc.sources.database.readiness import problems
from sqlmesh_like.cdc.sources.database.schema_changes.table_layouts import (
    TableLayout,
    table_layouts,
    why_values_changed,
)
from sqlmesh_like.cdc.sources.database.server import Table, connect, tables_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError, ProjectError
from sqlmesh_like.fault_points import DATABASE_POINTS, FAULT_VARIABLE
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.table_reader import read_table_rows
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import storable_name
from sqlmesh_like.project.nodes import DatabaseSettings, PartitionBy, Source
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.faults.calls import LIMIT
from tests.services import postgres
from tests.services.mariadb import Server, find_server, mariadb
from tests.services.process import java
from tests.services.random_shop import alter, statements
from tests.services.wanted import need
from tests.spark.cdc import test_live
from tests.spark.ingest_lake import Lake, table

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    need(find_server, lambda: ensure_jars(engine_jars("mysql")))
    with mariadb(tmp_path_factory.mktemp("database")) as service:
        yield service


def run(server: Server, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements; the rows of the last one."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def rows(server: Server, name: str) -> list[tuple[Any, ...]]:
    """What the database shows, as the ODS table should."""
    return sorted(run(server, f"select * from {name}"), key=str)


def lake_of(
    server: Server, root: Path, spark: SparkSession, database: str, *names: str, rows_per_query: int = 1000
) -> Lake:
    settings = DatabaseSettings("mysql", "127.0.0.1", server.port, server.user, database, rows_per_query=rows_per_query)
    return Lake(
        spark, root, tuple(table(name, database=database) for name in names), {"files": None, "database": settings}
    )


def test_snapshot_and_log_of_mariadb(server: Server, tmp_path: Path, spark: SparkSession) -> None:
    run(
        server,
        "create database store",
        "create table store.item (id int primary key, name varchar(20) comment 'é', price decimal(10,2) default 1.5,"
        " at datetime(6), free varchar(9) default 'x')",
        "insert into store.item values (1, 'a\\tb\\nc', 2.5, '2024-01-01 10:00:00.123456', null)",
        "insert into store.item values (2, null, null, null, 'y')",
        "create table store.other (id int primary key)",
        "create table store.tag (id int primary key, item int, foreign key (item) references store.item (id)"
        " on delete cascade)",
        "insert into store.tag values (1, 1)",
        "create table store.network (id int primary key, ip inet6)",  # which Debezium's grammar does not know
        "create table store.later (id int primary key, text varchar(9))",
    )
    lake = lake_of(server, tmp_path, spark, "store", "item", "tag", rows_per_query=2)
    lake.tables += (table("later", database="store", columns={"id": "int", "text": "string"}),)
    assert lake.run().dead_letters == 0
    assert lake.rows("item") == rows(server, "store.item")
    assert (lake.types("later"), lake.rows("later"), lake.commits("later")) == ({"id": "int", "text": "string"}, [], 1)
    run(
        server,
        "update store.item set id = 20 where id = 2",
        "insert into store.item (id) values (3), (4)",
        "insert into store.tag values (2, 4), (3, 1)",
        "delete from store.item where id = 4",  # and what refers to it, of which the log has nothing
        "insert into store.other values (1)",
        "alter table store.network add column former inet4",
        "insert into store.network (id) values (1)",
        "insert into store.later values (1, 'x')",
        "flush binary logs",
        "alter table store.item add column late int default 7",
        "alter table store.tag add column n int not null",  # all rows have 0 now, and no event says so
        "update store.item set name = 'z' where id = 1",
    )
    report = lake.run()
    assert not report.failed and report.dead_letters == 0
    assert lake.rows("item") == rows(server, "store.item")
    assert lake.rows("tag") == rows(server, "store.tag") == [(1, 1, 0), (3, 1, 0)]
    assert (lake.commits("item"), lake.rows("later")) == (2, [(1, "x")])
    run(
        server,
        "update store.item set name = 'logged', price = 9 where id = 3",
        "set sql_log_bin = 0",
        "update store.item set price = 2.51 where id = 1",
        "update store.item set name = 'y ', at = '2024-01-01 10:00:00.123457' where id = 20",
        "delete from store.item where id = 3",
        "insert into store.item (id) values (7)",
    )
    result = next(each for each in compared(lake) if each.table.name == "item")
    differing = {row.key: (row.only, [each.name for each in row.columns]) for row in result.examples}
    assert differing == {"id=1": (None, ["price"]), "id=20": (None, ["name", "at"]), "id=7": ("database", [])}
    assert (result.different, result.unread, result.uncompared, result.error) == (3, 1, (), None)
    run(server, "alter table store.later add column ip inet6", "insert into store.later (id) values (2)")
    with pytest.raises(IngestError, match=r"of its log, near .*column ip inet6"):
        lake.run()
    assert lake.rows("later") == [(1, "x")], "no row is read by the columns that the table had before"


def compared(lake: Lake) -> list[TableComparison]:
    """The tables of the lake compared with the database, with the log read to its end where rows differ."""
    _, target, source = lake.declared()
    place = SourcePaths(target, source)
    return list(compare_tables(place, source.tables, ComparisonRequest(), lambda: spool_log(place)))


def require_equal(lake: Lake, without: str = "") -> None:
    """Whatever has a common text is the same on both sides, in all tables but one."""
    for each in compared(lake):
        if each.table.name != without:
            assert (each.status, each.unread, each.examples) == ("pass", 0, ()), each


@pytest.mark.release
def test_every_type_of_mariadb_is_as_from_kafka(server: Server, tmp_path: Path, spark: SparkSession) -> None:
    """The tables, statements and comparison of `test_live`, which reads the same by Kafka."""
    live = test_live.Shop(spark, server, "")
    run(server, "create database shop")
    live.run(*(each.create() for each in live.tables.values()))
    live.run(*statements(live.tables, live.random, 300))
    lake = test_live.lake_of(live, tmp_path)
    settings = DatabaseSettings("mysql", "127.0.0.1", server.port, server.user, "shop")
    lake.settings = {"files": None, "database": settings}
    test_live.check(live, lake)
    require_equal(lake)
    for ddl in alter(live.tables):
        live.run(ddl, *statements(live.tables, live.random, 20))
    live.run(*statements(live.tables, live.random, 300))
    test_live.check(live, lake)
    for each in live.tables.values():
        types = lake.types(storable_name(each.name))
        assert {name: types.get(name) for name in test_live.wanted_types(each)} == test_live.wanted_types(each)
    require_equal(lake, without="moments")  # merge-on-read, with log files of several schemas
    # A log that ends with a statement without rows ends, and the next transaction is not taken for one that was read.
    live.run("create table shop.third (id int)")
    assert lake.run().events == 0
    live.run(*statements(live.tables, live.random, 20))
    test_live.check(live, lake)


UNKNOWN_STATEMENTS = {
    "CREATE TABLE other (a int)": False,
    "alter table `other` add a inet6": False,
    "ALTER TABLE shop.other ADD a inet6": False,
    'alter online table if exists "other" add a inet6': False,
    "/* a comment */ drop table if exists shop . other": False,
    "create table wanted.item (a inet6)": False,  # of another database
    "create or replace definer=`root`@`%` procedure p() begin end": False,
    "create trigger t after insert on item for each row set @a = 1": False,
    "alter table item add a inet6": True,
    "alter table ITEM add a inet6": True,
    'ALTER TABLE "item" ADD a inet6': True,
    "alter table `shop`.`item` add a inet6": True,
    "alter table other rename to item": True,
    "alter table other exchange partition p with table item": True,
    "alter table `a``b` add a inet6": True,
    "alter table /* x */ item add a inet6": True,
    "drop table other, item": True,
    "rename table other to item": True,
    "drop database shop": True,
    "something else": True,
}  # fmt: skip


def test_which_statements_that_debezium_does_not_know_may_concern_a_table_that_is_read(tmp_path: Path) -> None:
    need(lambda: ensure_jars(engine_jars("mysql")))
    probe = """public class Probe {
        public static void main(String[] statements) throws Exception {
            java.util.Properties settings = new java.util.Properties();
            settings.setProperty("table.include.list", "shop\\\\.item,shop\\\\.tag");
            settings.setProperty("sml.database", "shop");
            EventSpool.StatementLog log = new EventSpool.StatementLog(System.err, settings);
            for (int i = 0; i < statements.length; i++) System.out.println(log.mayConcern(statements[i]));
        }
    }"""
    package = resources.files("sqlmesh_like.cdc.sources.database")
    source = tmp_path / "Probe.java"
    source.write_text(package.joinpath("EventSpool.java").read_text(encoding="utf-8") + probe)
    command = java(ensure_jars(engine_jars("mysql")))
    done = subprocess.run(
        [*command, "org.codehaus.janino.SimpleCompiler", source, "Probe", *UNKNOWN_STATEMENTS],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [answer == "true" for answer in done.stdout.split()]
    assert dict(zip(UNKNOWN_STATEMENTS, answers, strict=True)) == UNKNOWN_STATEMENTS


@pytest.fixture(scope="module")
def pg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    need(postgres.find_server, lambda: ensure_jars(engine_jars("postgresql")))
    with postgres.postgres(tmp_path_factory.mktemp("database_pg")) as service:
        yield service


@pytest.mark.release
def test_snapshot_and_log_of_postgresql(pg: postgres.Server, tmp_path: Path, spark: SparkSession) -> None:
    pg.run(
        "create table item (id int primary key, name text, price numeric(10,2), list int[], at timestamptz)",
        "insert into item values (1, 'a', 2.5, array[1,null], '2024-01-01 10:00:00.123456+02')",
        "insert into item values (2, null, null, null, null)",
        "create table other (id int primary key)",
    )
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "postgres")
    lake = Lake(spark, tmp_path, (table("item", database="postgres"),), {"files": None, "database": settings})

    def shown() -> list[list[Any]]:
        return list(
            json.loads(pg.run("select json_agg(json_build_array(id, name, price::text) order by id) from item"))
        )

    def stored() -> list[list[Any]]:
        rows = lake.rows("item", "id", "name", "price")
        return [[key, name, None if price is None else str(price)] for key, name, price in rows]

    assert lake.run().dead_letters == 0
    assert stored() == shown()
    before = confirmed(pg)
    pg.run(
        "update item set id = 20 where id = 2",
        "insert into item (id) values (3), (4)",
        "delete from item where id = 4",
        "insert into other values (1)",
        "alter table item add column late int default 7",
        "update item set name = 'z' where id = 1",
    )
    report = lake.run()
    assert not report.failed and report.dead_letters == 0
    assert sorted(stored()) == sorted(shown())
    assert confirmed(pg) > before
    assert lake.run().events == 0 and lake.commits("item") == 2
    require_equal(lake)
    # One that is declared later, and one that was dropped and created again, whose rows no log that is read has.
    pg.run(
        "create table again (id int primary key)",
        "insert into again values (1)",
    )
    lake.tables = (
        *lake.tables,
        table("other", database="postgres"),
        table("again", database="postgres", table=r"public\.again"),
    )
    assert lake.run().dead_letters == 0
    assert lake.rows("other") == [(1,)] == lake.rows("again")
    pg.run("drop table again", "create table again (id int primary key)", "insert into again values (2)")
    pg.run("insert into other values (2)", "delete from other where id = 1")
    assert lake.run().dead_letters == 0
    assert lake.rows("other") == [(2,)] == lake.rows("again")
    pg.run("insert into other values (3)", "insert into again values (3)")
    assert lake.run(again=["other"]).dead_letters == 0
    assert lake.rows("other") == [(2,), (3,)] == lake.rows("again")
    # Values that the log does not repeat, in changes between the publication of a table and the end of its reading.
    pg.run(
        "create table large (id int primary key, n int, much text)",
        "alter table large alter much set storage external",
        "insert into large select n, 0, repeat(n::text, 9000) from generate_series(1, 4) n",
    )
    lake.tables = (*lake.tables, table("large", database="postgres"))

    @contextmanager
    def row_segments(place: SourcePaths, queries: Any) -> Iterator[Any]:
        pg.run("update large set n = 1 where id = 1", "delete from large where id = 3")
        pg.run("update large set much = repeat('y', 9000) where id = 1", "update large set n = 2 where id = 1")
        with row_snapshot.row_segments(place, queries) as segments:
            pg.run("update large set n = 3 where id in (1, 2)", "insert into large values (5, 5, repeat('z', 9000))")
            yield segments

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later_tables, "row_segments", row_segments)
        assert lake.run().dead_letters == 0
    require_equal(lake)
    assert [key for key, *_ in lake.rows("large")] == [1, 2, 4, 5]
    pg.run("update item set name = 'logged' where id = 1", "delete from item where id = 3")
    result = next(each for each in compared(lake) if each.table.name == "item")
    assert (result.status, result.different, result.unread) == ("pass", 0, 2)
    assert [each.name for each in result.uncompared] == ["list"]


def partitioned(pg: postgres.Server, spark: SparkSession, root: Path, **ingest: Any) -> Lake:
    """A lake that reads the table `part`, which is made with two partitions."""
    pg.run(
        "drop table if exists part, april",
        "create table part (id int, at date, v text, primary key (id, at)) partition by range (at)",
        "create table part_1 partition of part for values from ('2024-01-01') to ('2024-02-01')",
        "create table part_2 partition of part for values from ('2024-02-01') to ('2024-03-01')",
        "insert into part values (1, '2024-01-05', 'a'), (2, '2024-02-05', 'b'), (3, '2024-02-06', 'c')",
    )
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "postgres")
    declared = table("part", database="postgres", primary_key=("id", "at"), **ingest)
    return Lake(spark, root, (declared,), {"files": None, "database": settings})


APRIL = "for values from ('2024-04-01') to ('2024-05-01')"


@pytest.mark.release
def test_a_partitioned_table_of_postgresql_is_one_table(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    lake = partitioned(pg, spark, tmp_path)
    assert lake.run().events == 3
    steps: dict[str, tuple[str, ...]] = {
        "changes, and a row that moves": (
            "insert into part values (4, '2024-01-07', 'd')",
            "update part set v = 'bb' where id = 2",
            "delete from part where id = 3",
            "update part set at = '2024-01-09' where id = 2",
        ),
        "a new partition": (
            "create table part_3 partition of part for values from ('2024-03-01') to ('2024-04-01')",
            "insert into part values (5, '2024-03-07', 'e')",
        ),
        "one with rows from before, and columns in another order": (
            "create table april (v text, id int not null, at date not null, primary key (id, at))",
            "insert into april values ('f', 6, '2024-04-01'), ('g', 7, '2024-04-02')",
            f"alter table part attach partition april {APRIL}",
            "update part set v = 'gg' where id = 7",
            "insert into april values ('h', 8, '2024-04-03')",
        ),
        "one that is truncated": ("truncate part_1",),
        "one that is detached, and its rows changed": (
            "alter table part detach partition april",
            "update april set v = 'x' where id = 6",
        ),
        "and attached again": (f"alter table part attach partition april {APRIL}",),
        "detached, changed and attached again between two calls": (
            "alter table part detach partition april",
            "update april set v = 'y' where id = 6",
            f"alter table part attach partition april {APRIL}",
        ),
        "one that is dropped": ("drop table april",),
        "all rows": ("insert into part values (9, '2024-01-07', 'd')", "truncate part"),
    }
    for name, step in steps.items():
        pg.run(*step)
        report = lake.run()
        assert not report.failed and report.dead_letters == 0, name
        require_equal(lake)
    assert lake.rows("part") == []
    # A lake of a version that published partitions under their own names, and so missed all changes.
    publication = pg.run("select pubname from pg_publication_tables where tablename = 'part'").strip()
    pg.run(f"alter publication {publication} set (publish_via_partition_root = false)")
    record = next((tmp_path / "warehouse/_sml/database").glob("*/tables.json"))
    record.write_text(json.dumps({**json.loads(record.read_text()), "made": {}}))
    pg.run("insert into part values (10, '2024-01-07', 'missed')")
    lake.run()
    pg.run("update part set v = 'seen' where id = 10")
    lake.run()
    require_equal(lake)
    assert lake.rows("part") == [(10, datetime.date(2024, 1, 7), "seen")]


@pytest.mark.release
def test_rows_of_partitions_that_are_gone_stay_with_retention(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    lake = partitioned(pg, spark, tmp_path, deletes="retention")
    lake.run()
    pg.run(
        "drop table part_1",
        "create table april (like part including all)",
        "insert into april values (6, '2024-04-01', 'f')",
        f"alter table part attach partition april {APRIL}",
        "update part set v = 'later' where id = 2",
    )
    lake.run()
    assert [(key, v) for key, _, v in lake.rows("part")] == [(1, "a"), (2, "later"), (3, "c"), (6, "f")]
    assert lake.run().events == 0


def test_what_the_catalog_of_postgresql_says_of_partitions(pg: postgres.Server, tmp_path: Path) -> None:
    pg.run(
        "create schema old",
        "create table old.sale (id int, at date) partition by range (at)",
        "create table old.sale_1 partition of old.sale for values from ('2024-01-01') to ('2025-01-01')"
        " partition by range (at)",
        "create table old.sale_1_1 partition of old.sale_1 for values from ('2024-01-01') to ('2024-02-01')",
        "create table old.sale_2 partition of old.sale for values from ('2025-01-01') to ('2026-01-01')",
        "create table old.parent (id int primary key)",
        "create table old.child () inherits (old.parent)",
        "insert into old.sale values (1, '2024-01-02')",
    )
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "postgres", tables=("old[.].*",))

    def source_of(*declared: Any) -> Source:
        return Lake(None, tmp_path, declared, {"files": None, "database": settings}).declared()[2]  # type: ignore[arg-type]

    source = source_of(table("sale", database="postgres", deletes="retention"))
    with connect(settings) as db:
        every = tables_of(db, settings)
        wanted = wanted_tables(source, every)
        assert list(map(str, wanted)) == ["old.child", "old.parent", "old.sale"], "partitions come with their table"
        text = "\n".join(map(str, problems(db, settings, wanted)))
    for said in (
        "old.child inherits from old.parent",
        'ALTER TABLE "old"."child" NO INHERIT "old"."parent";',
        "the partition old.sale_2 has no primary key",
        'ALTER TABLE "old"."sale_1_1" REPLICA IDENTITY FULL;',
    ):
        assert said in text
    both = source_of(table("sale", database="postgres"), table("sale_2", database="postgres"))
    with pytest.raises(ProjectError, match=r"ods\.sale_2 reads old\.sale_2, a partition of old\.sale"):
        require_one_of_each(both, every, wanted)
    one = source_of(table("sales", table="sale.*", database="postgres"))
    require_one_of_each(one, every, wanted)
    sale, complete = [each for each in wanted if each.name == "sale"], frozenset({"old.sale"})

    def asked(record: ReadTables) -> UnreadPartitions:
        with connect(settings) as db:
            return unread_partitions(db, source, sale, record, partitions_of(db, sale))

    assert asked(ReadTables("", complete, made={})).whole == {"old.sale"}
    with connect(settings) as db:
        known = partitions_of(db, wanted)
    assert list(known) == ["old.sale"] and len(known["old.sale"].split()) == 3
    assert asked(ReadTables("", frozenset(), made=known)) == UnreadPartitions(frozenset(), {}, frozenset()), (
        "one that is not complete is read as a whole, and is not complete before that"
    )
    record = ReadTables("", complete, made=known)
    assert asked(record) == UnreadPartitions(frozenset(), {}, frozenset({"old.sale"}))
    pg.run("create table old.sale_3 partition of old.sale for values from ('2026-01-01') to ('2027-01-01')")
    assert asked(record).up_to_date == {"old.sale"}, "rows that come to an empty one are logged"
    pg.run("insert into old.sale values (2, '2026-01-02')")
    (query,) = asked(record).rows.values()
    assert pg.run(query).split() == ["2|2026-01-02"]
    for statement in ("truncate old.sale_1_1", "drop table old.sale_1"):
        pg.run(statement)
        assert not asked(record).whole, "its rows stay"
        source = source_of(table("sale", database="postgres"))
        assert asked(record).whole == {"old.sale"}, statement
        source = source_of(table("sale", database="postgres", deletes="retention"))


CHANGES = {
    "upper": ("alter table upper alter v type text using upper(v)",),
    "same_type": ("alter table same_type alter v type varchar(9) using upper(v)",),
    "typed": ("alter table typed alter d type numeric(9,1)",),
    "renamed": ("alter table renamed rename v to w",),
    "computed": ("alter table computed add r float default random()", "alter table computed alter r drop default"),
    "gone_default": ("alter table gone_default add c int default 4", "alter table gone_default alter c drop default"),
}
NO_CHANGES = {
    "generated": ("alter table generated add g int generated always as (id * 2) stored",),  # it is not read
    "constant": ("alter table constant add c int default 4",),
    "added": ("alter table added add c int", "alter table added drop d", "create index on added (v)", "analyze added"),
    "wider": ("alter table wider alter v type varchar(90), alter d type numeric(11,3), alter v set not null",),
    "texts": ("alter table texts alter v type text", "grant select on texts to public"),
    "vacuumed": ("vacuum full vacuumed",),
    "truncated": ("truncate truncated",),
}


def test_what_the_catalog_of_postgresql_says_of_columns(pg: postgres.Server) -> None:
    cases = {**CHANGES, **NO_CHANGES}
    pg.run(
        "create database columns",
        "\\c columns",
        *(f"create table {name} (id int primary key, v varchar(9), d numeric(9,3))" for name in cases),
        *(f"insert into {name} values (1, 'a', 1.25)" for name in cases),
    )
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "columns")

    def layouts() -> dict[str, TableLayout]:
        with connect(settings) as db:
            return table_layouts(db, [Table("public", name) for name in cases])

    before = layouts()
    assert not any(why_values_changed(before[name], now) for name, now in layouts().items())
    pg.run("\\c columns", *(statement for own in cases.values() for statement in own))
    changed = {name for name, now in layouts().items() if why_values_changed(before[name], now, frozenset())}
    assert changed == {f"public.{name}" for name in CHANGES}
    before = layouts()
    pg.run("\\c columns", "alter table generated alter g drop expression")
    assert why_values_changed(before["public.generated"], layouts()["public.generated"]) == "g is no longer generated"


def confirmed(pg: postgres.Server, database: str = "postgres") -> int:
    """How far the server may clean its log."""
    slots = f"pg_replication_slots where database = '{database}'"
    return int(pg.run(f"select confirmed_flush_lsn - '0/0'::pg_lsn from {slots}"))


CHILD = """
import sys
from importlib import import_module
from pathlib import Path
from sqlmesh_like.spark.jvm.session import start_session
from sqlmesh_like.project.nodes import Target
from tests.services.mariadb import Server

root, module, tables = Path(sys.argv[1]), import_module(f"tests.spark.cdc.{sys.argv[3]}"), sys.argv[5:]
lake_of = getattr(module, sys.argv[4])
settings = {"spark.sql.shuffle.partitions": "1", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
target = Target("test", "test", "spark", warehouse=str(root / "warehouse"), master="local[2]", spark=settings)
spark = start_session(target, "child", log_file=root / "child.log")
lake_of(Server(int(sys.argv[2])), root, spark, *tables).run()
"""
STEPS = (*DATABASE_POINTS, "ingest.begin", "ingest.table:1", "ingest.table:2", "ingest.last_commits")


def ingest_until_killed(
    step: str, server: Server, root: Path, lake: str, *tables: str, module: str = "test_database"
) -> None:
    """Ingest a lake of a function of a module in a process that is killed at a step."""
    with (root / "child.err").open("wb") as errors:
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(root), str(server.port), module, lake, *tables],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), FAULT_VARIABLE: step},
            cwd=REPOSITORY, stdout=errors, stderr=errors, check=False, timeout=180,
        )  # fmt: skip
    assert child.returncode == -signal.SIGKILL, (step, (root / "child.err").read_text()[-2000:])


def killed_lake(server: Server, root: Path, spark: SparkSession) -> Lake:
    """A table with a key, and one without: there each insert is a row of its own, so that none can hide."""
    lake = lake_of(server, root, spark, "killed", "item")
    return replace(lake, tables=(*lake.tables, table("entry", database="killed", primary_key=())))


@pytest.mark.release
@pytest.mark.timeout(200 * len(STEPS))
def test_killed_at_any_step_nothing_is_lost_or_doubled(server: Server, tmp_path: Path, spark: SparkSession) -> None:
    run(
        server,
        "create database killed",
        "use killed",
        "create table killed.item (id int primary key, n int)",
        "create table killed.entry (n int)",
        "insert into killed.item select seq, 0 from seq_1_to_20",
        "insert into killed.entry select seq from seq_1_to_20",
    )
    for number, step in enumerate(STEPS, 1):
        ingest_until_killed(step, server, tmp_path, "killed_lake")
        run(
            server,
            f"update killed.item set n = n + 1 where id % {number + 1} = 0",
            f"delete from killed.item where id = {number}",
            f"insert into killed.entry values ({100 * number}), ({100 * number})",
        )
    report = killed_lake(server, tmp_path, spark).run()
    assert not report.failed and report.dead_letters == 0
    lake = killed_lake(server, tmp_path, spark)
    assert lake.rows("item") == rows(server, "killed.item")
    assert lake.rows("entry") == rows(server, "killed.entry")


@pytest.mark.release
def test_a_table_that_takes_the_name_of_another_one_is_read_again(
    server: Server, tmp_path: Path, spark: SparkSession
) -> None:
    run(
        server,
        "create database named",
        "use named",
        "create table item (id int primary key, n int)",
        "create table entry (n int)",
        "insert into item values (1, 1), (2, 2)",
        "insert into entry values (1), (1)",
    )
    lake = lake_of(server, tmp_path, spark, "named", "item")
    lake.tables = (*lake.tables, table("entry", database="named", primary_key=()))
    assert not lake.run().failed
    for step in (
        ("drop table item", "create table item (id int primary key, n int)", "insert into item values (2, 3), (5, 5)"),
        (
            "create table loaded (id int primary key, n int)",
            "insert into loaded values (2, 4), (6, 6)",
            "rename table item to old, loaded to item",
            "insert into item values (7, 7)",
        ),
        ("alter table item rename to newer", "alter table old rename to item", "delete from item where id = 2"),
        ("create table if not exists item (id int primary key)", "update item set n = n + 1"),
        ("truncate entry", "insert into entry values (3)", "insert into item values (9, 9)"),
        ("rename table entry to former", "create table entry like former", "insert into entry values (4), (4)"),
        (
            "drop table item",
            "create table item (id int primary key, n int) partition by range (id)"
            " (partition p1 values less than (10), partition p2 values less than maxvalue)",
            "insert into item values (1, 1), (11, 2)",
        ),
        ("alter table item drop partition p1", "insert into item values (12, 3)"),
    ):
        run(server, "use named", *step)
        assert lake.run().dead_letters == 0
        for name in ("item", "entry"):
            assert lake.rows(name) == rows(server, f"named.{name}"), (name, step)
        assert lake.run().events == 0
    run(
        server,
        "use named",
        "create or replace table item (id int primary key, m int)",
        "insert into item values (1, 8)",
    )
    for _ in range(2):  # what was read before it was refused is not ingested by the next call
        with pytest.raises(IngestError, match="has changed the columns of item by CREATE OR REPLACE TABLE"):
            lake.run()
    assert lake.run("earliest").dead_letters == 0
    assert lake.rows("item", "id", "m") == [(1, 8)]


def later_lake(server: Server, root: Path, spark: SparkSession, *names: str) -> Lake:
    lake = lake_of(server, root, spark, "later", "first", *names)
    return replace(lake, tables=(*lake.tables, table("entry", database="later", primary_key=())))


@pytest.mark.release
@pytest.mark.timeout(200 * 8)
def test_tables_declared_later_have_all_their_rows_whatever_is_killed(
    server: Server, tmp_path: Path, spark: SparkSession
) -> None:
    run(
        server,
        "create database later",
        "use later",
        "create table first (id int primary key, n int)",
        "create table entry (n int)",
        "create table item (id int primary key, n int)",
        "insert into first values (1, 1)",
        "insert into item select seq, 0 from seq_1_to_20",
        "insert into entry values (1), (1)",
    )
    lake = later_lake(server, tmp_path, spark)
    assert not lake.run().failed
    run(
        server,
        "use later",
        "delete from item where id = 1",
        "alter table item add column late int default 7",
        "create table made (id int primary key, n int)",
        "insert into made values (1, 1), (2, 2)",
        "update item set n = 1 where id = 2",
        "insert into entry values (2), (2)",
    )
    for number, step in enumerate(("database.added:1", "database.read_again", "database.begin", "ingest.table:1"), 3):
        ingest_until_killed(step, server, tmp_path, "later_lake", "item", "made")
        run(
            server,
            "use later",
            f"delete from item where id = {number}",
            f"update made set n = {number} where id = 1",
            f"insert into entry values ({number}), ({number})",
        )
        if step == "database.added:1":  # others go on meanwhile: their log passes by what is not declared
            assert not lake.run().failed
            run(server, "use later", "delete from item where id = 20")
            assert not lake.run().failed
    wide = later_lake(server, tmp_path, spark, "item", "made")
    assert wide.run().dead_letters == 0
    for name in ("first", "item", "made", "entry"):
        assert wide.rows(name) == rows(server, f"later.{name}"), name
    # A table that was not read for a while has missed what happened in its log.
    run(server, "use later", "delete from made where id = 2", "update first set n = 2")
    assert lake.run().events == 1
    run(server, "use later", "insert into made values (3, 3)")
    assert wide.run().dead_letters == 0
    for name in ("first", "item", "made", "entry"):
        assert wide.rows(name) == rows(server, f"later.{name}"), name
    # Rows change while they are read: between the position of the log and its end.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(later_tables, "row_segments", changed_meanwhile(server))
        assert wide.run(again=["item", "entry"]).dead_letters == 0
    for name in ("first", "item", "made", "entry"):
        assert wide.rows(name) == rows(server, f"later.{name}"), name


def changed_meanwhile(server: Server) -> Any:
    """Changes before rows of `later` are read, and after they were."""

    @contextmanager
    def row_segments(place: SourcePaths, queries: Any) -> Iterator[Any]:
        run(
            server,
            "use later",
            "delete from item where id = 10",
            "update item set id = 100 where id = 12",
            "insert into item (id, n) values (101, 1)",
        )
        with row_snapshot.row_segments(place, queries) as segments:
            run(
                server,
                "use later",
                "delete from item where id = 101",
                "update item set n = n + 1 where id = 100",
                "insert into item (id, n) values (10, 5)",
                "delete from item where id = 13",
            )
            yield segments

    return row_segments


@pytest.mark.release
@pytest.mark.timeout(600)
def test_a_project_for_postgresql_follows_it(pg: postgres.Server, tmp_path: Path) -> None:
    pg.run(
        "create database live",
        "\\c live",
        "create table item (id int primary key, name text)",
        "comment on table item is 'What is sold'",
        "create schema old",
        'create table old."Odd Name" ("a b" int primary key, "select" numeric(5,1))',
        "insert into item values (1, 'a')",
        'insert into old."Odd Name" values (1, 1.5)',
    )
    url = f"postgresql://{pg.user}@127.0.0.1:{pg.port}/live"
    assert call(tmp_path, "init", "lake", "--from", url).wait(timeout=100) == 0
    project = tmp_path / "lake"
    assert call(project, "debug").wait(timeout=100) == 0
    watch = call(project, "watch", "--trigger", "1 second")
    try:
        wait_for_rows(project, "stg_item", [(1, "a")], watch)
        before = confirmed(pg, "live")
        pg.run("\\c live", "insert into item values (2, 'b')", "delete from item where id = 1")
        wait_for_rows(project, "stg_item", [(2, "b")], watch)
        wait_for_rows(project, "stg_odd_name", [(1, Decimal("1.5"))], watch)
        while confirmed(pg, "live") <= before:
            assert watch.poll() is None
            time.sleep(1)
    finally:
        watch.send_signal(signal.SIGTERM)
    assert watch.wait(timeout=LIMIT) == 143, (project / "err").read_text()[-2000:]


def call(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    with (folder / "err").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "sqlmesh_like", *words],
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, cwd=folder, stdout=errors, stderr=errors,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


def wait_for_rows(project: Path, name: str, wanted: list[tuple[Any, ...]], watch: subprocess.Popen[bytes]) -> None:
    limit = time.monotonic() + LIMIT
    while True:
        timeline = Timeline(str(project / "warehouse" / "dws" / name))
        rows = read_table_rows(table_state(timeline), -1) if timeline.frontier else None
        if rows is not None and sorted(rows.rows) == wanted:
            return
        assert watch.poll() is None and time.monotonic() < limit, (project / "err").read_text()[-3000:]
        time.sleep(0.5)


@pytest.mark.release
def test_after_a_lost_position_a_new_snapshot_leaves_what_the_database_has(
    server: Server, tmp_path: Path, spark: SparkSession
) -> None:
    run(
        server,
        "create database lost",
        "use lost",
        "create table item (id int primary key, n int)",
        "create table entry (n int)",
        "insert into item values (1, 1), (2, 2)",
        "insert into entry values (1), (1)",
    )
    lake = lake_of(server, tmp_path, spark, "lost", "item")
    lake.tables = (*lake.tables, table("entry", database="lost", primary_key=()))
    assert not lake.run().failed
    run(server, "use lost", "delete from item where id = 1", "delete from entry", "insert into entry values (3)")
    offset = next((tmp_path / "warehouse/_sml/database/shop/offsets").iterdir())
    lost = offset.read_text().replace("binlog.0", "binlog.9")
    offset.write_text(re.sub(r'"gtids":"[^"]*"', '"gtids":"7-7-7"', lost))
    with pytest.raises(IngestError, match="no longer has the part of its log") as error:
        lake.run()
    assert "--from earliest" in str(error.value.hint)
    report = lake.run("earliest")
    assert not report.failed and report.dead_letters == 0
    assert lake.rows("item") == rows(server, "lost.item") and lake.rows("entry") == rows(server, "lost.entry")


def repair(lake: Lake, results: list[TableComparison], meanwhile: tuple[str, ...] = (), server: Any = None) -> Repair:
    """Add rows that differ to the spool; these statements run after the rows were read, before the log is."""
    place = SourcePaths(*lake.declared()[1:])

    def read_log() -> None:
        if meanwhile:
            run(server, *meanwhile)
        spool_log(place)

    return add_repair(place, results, read_log)


@pytest.mark.release
def test_rows_that_differ_are_read_again_and_no_event_of_the_log_overtakes_them(
    server: Server, tmp_path: Path, spark: SparkSession
) -> None:
    """Seven planted differences, in tables with every way of deciding between two versions of a row."""
    run(
        server,
        "create database mended",
        "use mended",
        "create table item (id int primary key, name varchar(300), price decimal(10,2), rate double, at datetime(6),"
        " spot point, late int)",
        "insert into item select seq, concat('name ', seq), seq / 7, 0e0, '2024-01-01', point(seq, 1), 0"
        " from seq_1_to_20",
        "create table part (id int, k varchar(9), day date, n int, primary key (id, k))",
        "insert into part select seq, 'a ', '2024-01-31', 0 from seq_1_to_9",
        "create table ranked (id int primary key, at datetime(6), n int)",
        "insert into ranked select seq, '2024-01-01', 0 from seq_1_to_9",
        "insert into ranked values (50, null, null)",
    )
    lake = lake_of(server, tmp_path, spark, "mended", "item")
    by_day = PartitionBy("day", "yyyyMM", "month")
    part = table("part", database="mended", primary_key=("id", "k"), partition_by=by_day)
    lake.tables = (*lake.tables, part, table("ranked", database="mended", order_by=("at",)))
    assert not lake.run().failed
    run(
        server,
        "use mended",
        "set sql_log_bin = 0",
        "update item set name = 'lost' where id = 1",
        "delete from item where id = 2",
        "insert into item values (1000, concat(repeat('ü', 250), 'x'), null, -0e0, '2024-01-01', point(7, 7), null)",
        "update item set price = price + 0.01 where id = 4",
        "update item set name = concat(name, ' ') where id = 5",
        "update item set rate = 1e-300 where id = 6",
        "update item set at = at + interval 1 microsecond, spot = point(9, 9) where id = 7",
        "update item set late = 1 where id in (8, 9, 10)",
        "update part set day = '2024-02-01' where id = 1",
        "delete from part where id = 2",
        "insert into part values (1, 'b', '1999-12-31', null)",
        "update ranked set n = 5, at = '2024-01-02' where id = 1",
        "delete from ranked where id in (2, 50)",
        "update ranked set n = 6 where id = 3",  # the same order as the lake's row
        "update ranked set n = 7, at = '2023-12-31' where id = 4",  # an earlier one
        "set sql_log_bin = 1",
        "update item set late = 2 where id = 8",  # an event that the lake has not read
        "update item set late = 3 where id = 11",
    )
    results = compared(lake)
    counts = {each.table.name: (each.different, each.unread) for each in results}
    assert counts == {"item": (9, 2), "part": (3, 0), "ranked": (5, 0)}
    # One row changes, one goes, after they were read: what was read of them is older than the log.
    changes = ("update mended.item set late = 4 where id = 9", "delete from mended.item where id = 10")
    done = repair(lake, results, changes, server)
    assert (done.rows, done.deletes, done.changed, done.left) == (6 + 2 + 3, 1 + 1 + 1, 2, 1)
    run(server, "use mended", "update item set late = 5 where id = 1", "delete from item where id = 4")
    report = lake.run()
    assert not report.failed and report.dead_letters == 0
    assert lake.rows("part", "id", "k", "day", "n") == rows(server, "mended.part")
    names = ("id", "name", "price", "rate", "at", "late")
    assert lake.rows("item", *names) == sorted(run(server, f"select {', '.join(names)} from mended.item"), key=str)
    spots = dict(lake.rows("item", "id", "spot"))  # a column that is not compared
    assert '"x":9.0' in spots[7] and '"x":7.0' in spots[1000]
    item, part_result, ranked = compared(lake)
    assert [item.status, part_result.status] == ["pass", "pass"]
    # A row that the lake orders later than the database does stays: by `order_by` it is the newer one.
    # So does one with nothing but its key: its delete would have no order.
    assert [row.key for row in ranked.examples] == ["id=4", "id=50"]
    run(server, "use mended", "update ranked set at = '2024-03-01' where id = 4", "insert into item (id) values (4)",
        "insert into ranked values (50, '2024-01-01', 1)")  # fmt: skip
    assert not lake.run().failed
    require_equal(lake)


@pytest.mark.release
def test_rows_of_postgresql_are_read_again_without_a_slot_of_their_own(
    pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    pg.run(
        "create database mended",
        "\\c mended",
        "create table item (id uuid primary key, name text, list int[], much text)",
        "insert into item select ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'a', array[n], repeat('x', 9000)"
        " from generate_series(1, 5) n",
        'create schema "Old"',
        'create table "Old"."Odd" ("a b" numeric(9,2) primary key, at timestamptz,'
        ' "twice, it\'s" numeric generated always as ("a b" * 2) stored)',  # of which the log has nothing
        "insert into \"Old\".\"Odd\" values (1.50, 'infinity'), (2, '2024-01-01 10:00+02'), (3, null)",
    )
    settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "mended")
    odd = table("odd", database="mended", primary_key=("a_b",))
    assert odd.ingest is not None
    odd = replace(odd, ingest=replace(odd.ingest, table="Odd"))
    lake = Lake(spark, tmp_path, (table("item", database="mended"), odd), {"files": None, "database": settings})
    lake.run()
    assert [reason for *_, reason, _ in lake.dead_letters()] == ["column `at`: cannot read infinity as timestamp"]
    assert set(lake.types("odd")) == {"a_b", "at"}
    slots = pg.run("select count(*) from pg_replication_slots")
    for name, statement in (
        ("item", "update item set name = 'b' where list = array[1]"),
        ("item", "delete from item where list = array[2]"),
        ("item", "insert into item values ('ffffffff-0000-0000-0000-000000000000', E'n\\n''ew', array[7,null], 'y')"),
        ('"Old"."Odd"', 'delete from "Old"."Odd" where "a b" = 3'),
        ('"Old"."Odd"', 'update "Old"."Odd" set at = null where "a b" in (1.5, 2)'),
    ):
        unlogged(pg, name, statement)
    results = compared(lake)
    assert [each.different for each in results] == [3, 3]
    assert [(each.name, each.by_nature) for each in results[1].uncompared] == [("twice, it's", True)]
    done = repair(lake, results)
    assert (done.rows, done.deletes, done.changed) == (4, 2, 0)
    assert pg.run("select count(*) from pg_replication_slots") == slots
    assert lake.run().dead_letters == 0
    require_equal(lake)
    lists = dict(lake.rows("item", "id", "list"))
    assert lists["ffffffff-0000-0000-0000-000000000000"] == "[7,null]"


LOCAL_TIMES = {
    "2024-07-01 12:00:00.123456": "2024-07-01 10:00:00.123456",
    "2024-10-27 02:30:00": "2024-10-27 00:30:00",  # repeated: the first one
    "2024-10-27 03:00:00": "2024-10-27 02:00:00",
    "1890-01-01 00:00:00": "1889-12-31 23:06:32",  # before there were zones
    "2077-08-01 00:00:00": "2077-07-31 22:00:00",
    "9999-12-31 23:59:59": "9999-12-31 22:59:59",
}


@pytest.mark.release
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_local_times_of_a_database_are_stored_and_compared_in_utc(
    kind: Any, server: Server, pg: postgres.Server, tmp_path: Path, spark: SparkSession
) -> None:
    values = ", ".join(f"('{each}', '2024-07-01 12:00:00', {n})" for n, each in enumerate(LOCAL_TIMES))
    is_mysql, columns = kind == "mysql", "at {0} primary key, seen {1}, n int, skipped {0} default '2024-03-31 02:30'"
    types = ("datetime(6)", "timestamp(6) default '2024-01-01'") if is_mysql else ("timestamp", "timestamptz")
    tables = (f"create table {name} ({columns.format(*types)})" for name in ("clock", "other"))
    rows_of = (f"insert into {name} (at, seen, n) values {values}" for name in ("clock", "other"))
    if is_mysql:
        run(server, "create database clocks", "use clocks", *tables, *rows_of)
        settings = DatabaseSettings("mysql", "127.0.0.1", server.port, server.user, "clocks")
    else:
        pg.run("create database clocks", "\\c clocks", *tables, *rows_of)
        settings = DatabaseSettings("postgresql", "127.0.0.1", pg.port, pg.user, "clocks")
    by_year = PartitionBy("at", "yyyyMM", "month")
    clock = table("clock", database="clocks", primary_key=("at",), partition_by=by_year, time_zone="Europe/Berlin")
    lake = Lake(spark, tmp_path, (clock, table("other", database="clocks", primary_key=("at",))), {
        "files": None, "database": settings,
    })  # fmt: skip
    assert lake.run().dead_letters == 0
    moments = [datetime.datetime.fromisoformat(each) for each in LOCAL_TIMES.values()]
    noon = datetime.datetime(2024, 7, 1, 12)
    later = datetime.datetime(2024, 3, 31, 1, 30)  # as much as the clock skips
    assert lake.rows("clock", "at", "seen", "n", "skipped", "month") == sorted(
        ((at, noon, n, later, f"{at:%Y%m}") for n, at in enumerate(moments)), key=str
    )
    assert {row[0] for row in lake.rows("other", "at")} == {*map(datetime.datetime.fromisoformat, LOCAL_TIMES)}
    require_equal(lake)
    changes = ("update clock set at = '2024-10-27 02:31:00' where n = 1", "delete from clock where n in (3, 5)")
    if is_mysql:
        run(server, "use clocks", *changes)
    else:
        pg.run("\\c clocks", *changes)
    assert lake.run().dead_letters == 0
    assert len(lake.rows("clock")) == len(LOCAL_TIMES) - 2
    require_equal(lake)
    if is_mysql:
        run(server, "use clocks", "set sql_log_bin = 0", "update clock set at = '2024-10-27 01:31:00' where n = 1")
        (result,) = (each for each in compared(lake) if each.different)
        assert [(row.key, row.only) for row in result.examples] == [
            ("at=2024-10-26 23:31:00", "database"), ("at=2024-10-27 00:31:00", "lake"),
        ]  # fmt: skip
        assert repair(lake, [result]).deletes == 1
        lake.run()
        require_equal(lake)


def unlogged(pg: postgres.Server, name: str, statement: str) -> None:
    """Change a table while it is not published: the source never hears of it."""
    publication = pg.run("\\c mended", "select pubname from pg_publication").strip()
    alter = f"alter publication {publication}"
    pg.run("\\c mended", f"{alter} drop table {name}", statement, f"{alter} add table {name}")
