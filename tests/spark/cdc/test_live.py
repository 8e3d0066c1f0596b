"""MariaDB → Debezium → Kafka → ODS, all of them real: the ODS tables hold what `SELECT *` shows, values and types."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.names import storable_name
from sqlmesh_like.project.nodes import PartitionBy
from tests.levels import count
from tests.services.connect import connect_jars, debezium, of_mariadb, plugin
from tests.services.mariadb import Server, find_server, mariadb
from tests.services.random_shop import Table, alter, plain, shop, statements
from tests.services.wanted import need
from tests.spark.ingest_lake import Lake, table
from tests.spark.topics import wait_for, wait_for_snapshot

TOPIC = "cdc_all"


class Shop:
    """A live database, its topic, and the tables as the statements leave them."""

    def __init__(self, spark: SparkSession, server: Server, kafka: str) -> None:
        self.spark, self.server, self.kafka = spark, server, kafka
        self.tables = shop()
        self.random = Random(20240501)
        self.marks = 0

    def run(self, *texts: Any) -> None:
        with self.server.connect("shop") as connection, connection.cursor() as cursor:
            for text in texts:
                cursor.execute(*((text,) if isinstance(text, str) else text))

    def mark(self) -> None:
        """Write a row that no table takes, and wait until the topic has it: all before it has arrived then."""
        self.marks += 1
        self.run(f"insert into marker values ({self.marks})")
        wait_for(self.spark, self.kafka, TOPIC, f'"after":{{"n":{self.marks}}}')

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """What the database shows, as the ODS table should."""
        own = self.tables[name]
        names = ", ".join(f"`{column.name}`" for column in own.columns)
        with self.server.connect("shop") as connection, connection.cursor() as cursor:
            cursor.execute(f"select {names} from `{name}`")
            records = cursor.fetchall()
        kinds = [column.spark for column in own.columns]
        return sorted((tuple(map(plain, row, kinds)) for row in records), key=str)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, kafka: str) -> Iterator[Shop]:
    need(find_server, connect_jars, lambda: plugin("mariadb"))
    folder = tmp_path_factory.mktemp("live")
    with ExitStack() as services:
        server = services.enter_context(mariadb(folder))
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("create database shop")
        shop = Shop(spark, server, kafka)
        shop.run("create table marker (n int primary key)", *(each.create() for each in shop.tables.values()))
        shop.run(*statements(shop.tables, shop.random, 300))
        services.enter_context(debezium(folder, kafka, of_mariadb(server, kafka, TOPIC, "shop"), "mariadb"))
        wait_for_snapshot(spark, kafka, TOPIC)
        yield shop


def lake_of(live: Shop, root: Path) -> Lake:
    """Tables of both types, one of them partitioned by a column that changes."""
    special: dict[str, dict[str, Any]] = {
        "user": {"partition_by": PartitionBy("create_time", "yyyyMM", "year_month")},
        "moments": {"table_type": "mor"},
    }
    tables = tuple(
        table(storable_name(name), database="shop", table=name, primary_key=tuple(map(storable_name, each.key)))
        if name not in special
        else table(name, database="shop", table=name, primary_key=each.key, **special[name])
        for name, each in live.tables.items()
    )
    kafka = {"bootstrap_servers": live.kafka, "topics": [TOPIC]}
    return Lake(live.spark, root, tables, {"files": None, "kafka": kafka, "max_events_per_batch": 4000})


@pytest.mark.release
@pytest.mark.checklist(1, 2, 3, 26)
def test_ods_tables_hold_what_the_database_shows(live: Shop, tmp_path: Path) -> None:
    lake = lake_of(live, tmp_path)
    live.mark()
    check(live, lake)
    for ddl in alter(live.tables):
        live.run(ddl, *statements(live.tables, live.random, count(20, 100, 100)))
    live.run(*statements(live.tables, live.random, count(300, 1200, 1200)))
    live.mark()
    check(live, lake)
    for each in live.tables.values():
        types = lake.types(storable_name(each.name))
        assert {name: types.get(name) for name in wanted_types(each)} == wanted_types(each)


def wanted_types(own: Table) -> dict[str, str]:
    return {storable_name(column.name): column.spark for column in own.columns}


def check(live: Shop, lake: Lake) -> None:
    """Take in all there is; nothing failed, nothing was bad, and both sides show the same rows."""
    report = lake.run()
    assert not report.failed, report
    assert report.dead_letters == 0, lake.dead_letters()
    for each in live.tables.values():
        names = [storable_name(column.name) for column in each.columns]
        ods = lake.rows(storable_name(each.name), *names)
        ours = sorted((tuple(map(stored, row)) for row in ods), key=str)
        theirs = sorted((tuple(map(single, row, each.columns)) for row in live.rows(each.name)), key=str)
        assert len(ours) > 20
        differences = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
        assert ours == theirs, (each.name, names, len(ours), len(theirs), differences[:3])


def stored(value: Any) -> Any:
    """A value as Spark hands it out, moments in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(value, bytearray) else value


def single(value: Any, column: Any) -> Any:
    """A FLOAT's text is the shortest for 32 bits."""
    return struct.unpack("f", struct.pack("f", value))[0] if column.spark == "float" and value is not None else value
