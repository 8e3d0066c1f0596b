"""PostgreSQL → Debezium (`pgoutput`) → Kafka → ODS: its types, large values that are not logged, keys, a truncate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.stream.replay import replay
from tests.services.connect import connect_jars, debezium, of_postgres, plugin
from tests.services.postgres import Server, find_server, postgres
from tests.services.wanted import need
from tests.spark.ingest_lake import Lake, table
from tests.spark.topics import wait_for, wait_for_snapshot

TOPIC = "cdc_pg"
SCHEMA = (
    """create table doc (id int primary key, body text, n int, price numeric(20,5), free numeric, flag boolean,
        at timestamptz, ts timestamp(6), d date, t time(6), small smallint, big bigint, f real, dbl double precision,
        raw bytea, u uuid, j jsonb, list int[], code bit(5), "Odd-Name" varchar(9))""",
    "create table gone (id int primary key)",
    "create table marker (n int primary key)",
)
# Random text cannot be packed, so it is stored apart: an update that leaves it alone does not log it.
_LARGE = "(select string_agg(md5((i * {0})::text), '') from generate_series(1, 300) i)"
_ROW = (
    "insert into doc values ({0}, " + _LARGE + ", {0}, {0} * -1234.56789, {0} * 1.5e20 + 0.001, {0} % 2 = 0,"
    " timestamptz '2024-01-01 10:00:00.123456+02' + interval '{0} day', '1969-12-31 23:59:59.999999', '0101-02-03',"
    " '23:59:59.000001', -{0}, {0} * 900000000000000, {0} / 8.0, {0} / 3.0, '\\xDEAD00', md5('{0}')::uuid,"
    " '{{\"a\": {0}}}', array[{0}, null, 3], B'10110', 'é')"
)
_SHOWN = """select json_agg(json_build_array(id, body, n, price::text, free::text, flag, extract(epoch from at)::text,
    ts::text, d::text, t::text, small, big, f, dbl, encode(raw, 'hex'), u::text, j::text, list::text, code::int,
    "Odd-Name") order by id) from doc"""
_STORED = (
    "id", "body", "n", "cast(price as string)", "free", "flag",
    "cast(unix_micros(at) / 1000000BD as decimal(20,6)) as at", "cast(ts as string)", "cast(d as string)", "t",
    "small", "big", "f", "dbl", "lower(hex(raw))", "u", "j",
    "concat('{', replace(substr(list, 2, length(list) - 2), 'null', 'NULL'), '}')", "code", "Odd_Name",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, kafka: str) -> Iterator[Server]:
    need(find_server, connect_jars, lambda: plugin("postgres"))
    folder = tmp_path_factory.mktemp("pg")
    with postgres(folder) as service:
        service.run(*SCHEMA, *(_ROW.format(n) for n in range(1, 6)), "insert into doc (id) values (6)")
        service.run("insert into gone values (1), (2)")
        with debezium(folder, kafka, of_postgres(service, TOPIC), "postgres"):
            wait_for_snapshot(spark, kafka, TOPIC)
            yield service


@pytest.mark.release
@pytest.mark.checklist(1)
def test_ods_tables_hold_what_the_database_shows(
    spark: SparkSession, server: Server, kafka: str, tmp_path: Path
) -> None:
    tables = (table("doc", database="postgres", table="public.doc"), table("gone", database="postgres"))
    source = {"bootstrap_servers": kafka, "topics": [TOPIC]}
    lake = Lake(spark, tmp_path, tables, {"files": None, "kafka": source})
    mark(spark, server, kafka, 1)
    check(lake, server)
    server.run(
        "update doc set n = n + 100 where id < 4",
        "update doc set body = 'short', price = null where id = 3",
        "update doc set n = -1 where id = 2",
        *(_ROW.format(n) for n in (7, 8)),
        "update doc set flag = null where id = 7",
        "delete from doc where id in (1, 8)",
        "update doc set id = 60 where id = 6",
        "alter table doc add column late numeric(6,2) default 9.5",
        "update doc set n = 0 where id = 5",
        "truncate gone",
        "insert into gone values (3)",
    )
    mark(spark, server, kafka, 2)
    check(lake, server)
    assert lake.rows("gone") == [(3,)]
    late = json.loads(server.run("select json_agg(late::text) from doc"))
    assert [str(value) for (value,) in lake.rows("doc", "late")] == late
    assert lake.types("doc")["late"] == "decimal(6,2)"
    follow_the_advice(spark, server, kafka, lake)


def follow_the_advice(spark: SparkSession, server: Server, kafka: str, lake: Lake) -> None:
    """A changed key without its large value is a dead letter whose reason says what to do: that brings the row."""
    server.run("update doc set id = 50 where id = 5", "update doc set n = 1 where id = 7")
    mark(spark, server, kafka, 3)
    assert lake.run().dead_letters == 1
    ((_, _, reason, _),) = lake.dead_letters()
    assert reason.startswith("body: the source did not log this value") and "by REPLICA IDENTITY FULL" in reason
    assert [row[0] for row in lake.rows("doc", "id")] == [2, 3, 4, 60, 7]
    server.run("alter table doc replica identity full", "update doc set n = n where id = 50")
    mark(spark, server, kafka, 4)
    check(lake, server)
    assert [row[0] for row in lake.rows("doc", "id")] == [2, 3, 4, 50, 60, 7]
    replay(spark, *lake.declared())
    assert lake.dead_letters() == []
    check(lake, server)


def mark(spark: SparkSession, server: Server, kafka: str, number: int) -> None:
    server.run(f"insert into marker values ({number})")
    wait_for(spark, kafka, TOPIC, f'"after":{{"n":{number}}}')


def check(lake: Lake, server: Server) -> None:
    report = lake.run()
    assert not report.failed, report
    assert report.dead_letters == 0, lake.dead_letters()
    theirs = json.loads(server.run(_SHOWN))
    stored = lake.spark.read.format("hudi").load(lake.uri("doc")).selectExpr(*_STORED).orderBy("id")
    ours = [list(map(plain, row)) for row in stored.collect()]
    assert ours == [list(map(same, row)) for row in theirs]


def plain(value: Any) -> Any:
    return str(value) if type(value).__name__ == "Decimal" else value


def same(value: Any) -> Any:
    return value
