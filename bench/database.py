"""An hour of a database's log in one batch: read from the database itself, and the same events read from Kafka.

MariaDB has 100 changes a second for an hour, in transactions of ten rows of three tables. Debezium's engine spools
them, and they are ingested from there; the spooled events are also sent to Kafka, as Debezium in Connect would, and
ingested into a lake that began with the same rows. Each repetition begins with the lakes as they were before.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from bench.result import Options, SuiteResult, Timings, Unavailable
from bench.spark import seconds_of, spark_session
from sqlmesh_like.cdc.sources.database.capture import spool_log
from sqlmesh_like.cdc.sources.database.engine import engine_jars
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import DatabaseSettings
from sqlmesh_like.spark.jvm.jars import ensure_jars
from tests.services.kafka import broker
from tests.services.mariadb import Server, mariadb
from tests.spark.ingest_lake import Lake, table

PER_HOUR = 360_000
TABLES = ("orders", "item", "customer")
_ROWS_OF_A_TRANSACTION = 10
_COLUMNS = (
    "id bigint primary key, name varchar(40), city varchar(40), amount decimal(12,2), quantity int, score double,"
    " is_new boolean, at datetime(6)"
)
_ROW = (
    "seq, concat('customer ', seq % 9973), concat('city ', seq % 97), (seq * 7919 % 100003) + 0.25, seq % 13,"
    " seq % 1009 + 0.5, seq % 2, '2024-01-01' + interval seq second"
)


@dataclass(frozen=True)
class _Lakes:
    """Both lakes, with their warehouses as they were before the hour."""

    database: Lake
    kafka: Lake

    def keep(self) -> None:
        for lake in (self.database, self.kafka):
            shutil.copytree(lake.warehouse, f"{lake.warehouse}_before")

    def restore(self) -> None:
        for lake in (self.database, self.kafka):
            shutil.rmtree(lake.warehouse)
            shutil.copytree(f"{lake.warehouse}_before", lake.warehouse)


def run(options: Options) -> SuiteResult:
    """Measure an hour's changes at the usual scale, and so many at others."""
    events = round(PER_HOUR * options.scale / 0.1)
    try:
        ensure_jars(engine_jars("mysql"))
        timings = _measured(options, events)
    except MachineError as error:
        raise Unavailable(f"MariaDB or a broker of Kafka cannot be started here: {error}") from error
    return SuiteResult(
        "database",
        f"{events:,} changes of a database's log in one batch",
        "ingestion from Kafka ÷ ingestion from the database, of the same events in one session",
        timings.figures(),
    )


def _measured(options: Options, events: int) -> Timings:
    root, timings = options.folder, Timings()
    for name in ("server", "broker", "from_database", "from_kafka"):
        (root / name).mkdir(parents=True)
    with (
        mariadb(root / "server") as server,
        broker(root / "broker") as kafka,
        spark_session(root, options.memory, with_kafka=True) as spark,
    ):
        _statements(server, _first_rows(max(1000, events // 12)))
        lakes = _Lakes(_from_database(spark, server, root), _from_kafka(spark, kafka, root))
        _run(lakes.database)
        sent = _send(spark, kafka, lakes.database, ())
        _run(lakes.kafka)
        _statements(server, _changes(events, max(1000, events // 12)))
        lakes.keep()
        for number in range(-1, options.repeat):  # the first one warms up the JVM
            lakes.restore()
            spooling = seconds_of(lambda: spool_log(_place(lakes.database)))
            if number < 0:
                _send(spark, kafka, lakes.database, sent)
            order: list[Callable[[], float]] = [lambda: _run(lakes.database), lambda: _run(lakes.kafka)]
            seconds = [work() for work in (order if number % 2 else order[::-1])]
            ours, other = seconds if number % 2 else seconds[::-1]
            print(f"spooled in {spooling:.1f} s; ingested in {ours:.1f} s, from Kafka in {other:.1f} s", flush=True)
            if number < 0:
                _expect_equal(lakes)
                continue
            for name, on_kafkas_side, on_ours in (
                ("without Debezium's work", 0.0, 0.0),
                ("with Debezium's work on both sides", spooling, spooling),
                ("with Debezium's work on our side alone", 0.0, spooling),
            ):
                timings.add(
                    "from Kafka ÷ from the database", name, other=other + on_kafkas_side, ours=ours + on_ours,
                    events=events, spooling_seconds=spooling,
                )  # fmt: skip
    return timings


def _statements(server: Server, statements: Iterable[str]) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _first_rows(rows: int) -> list[str]:
    made = [f"create table hour.{name} ({_COLUMNS})" for name in TABLES]
    inserts = [f"insert into hour.{name} select {_ROW} from seq_1_to_{rows}" for name in TABLES]
    return ["create database hour", "use hour", *made, *inserts]


def _changes(events: int, rows: int) -> Iterable[str]:
    """Transactions: five in ten update scattered ranges of rows, three insert, two delete what was inserted first."""
    dice, size = random.Random(1), _ROWS_OF_A_TRANSACTION
    newest, oldest = dict.fromkeys(TABLES, rows), dict.fromkeys(TABLES, 1)
    yield "use hour"
    for _ in range(events // size):
        name = dice.choices(TABLES, (6, 3, 1))[0]
        kind = dice.random()
        if kind < 0.3:
            first = newest[name] + 1
            newest[name] += size
            yield f"insert into {name} select {_ROW} from seq_{first}_to_{first + size - 1}"
        elif kind < 0.5:
            first = oldest[name]
            oldest[name] += size
            yield f"delete from {name} where id between {first} and {first + size - 1}"
        else:
            first = dice.randrange(oldest[name], newest[name] - size)
            change = f"amount = amount + 1, city = concat('city ', {dice.randrange(97)})"
            yield f"update {name} set {change} where id between {first} and {first + size - 1}"


def _from_database(spark: SparkSession, server: Server, root: Path) -> Lake:
    settings = DatabaseSettings("mysql", "127.0.0.1", server.port, server.user, "hour")
    tables = tuple(table(name, database="hour") for name in TABLES)
    return Lake(spark, root / "from_database", tables, {"files": None, "database": settings})


def _from_kafka(spark: SparkSession, kafka: str, root: Path) -> Lake:
    settings = {"bootstrap_servers": kafka, "topics": list(TABLES)}
    tables = tuple(table(name, database="hour") for name in TABLES)
    return Lake(spark, root / "from_kafka", tables, {"files": None, "kafka": settings})


def _place(lake: Lake) -> SourcePaths:
    _, target, source = lake.declared()
    return SourcePaths(target, source)


def _run(lake: Lake) -> float:
    def work() -> None:
        report = lake.run()
        assert not report.failed and not report.dead_letters, report

    return seconds_of(work)


def _send(spark: SparkSession, kafka: str, lake: Lake, before: Sequence[str]) -> list[str]:
    """Send the segments of the lake's spool that were not sent before, in order; a topic for each table."""
    spool = spool_of(_place(lake))
    paths = sorted(map(str, (spool.folder / "log").glob("*.gz")))
    for path in paths:
        if path in before:
            continue
        parts = F.split("value", "\t", 2)
        topic = F.regexp_extract(parts[0], '"table":"([a-z]+)"', 1)
        lines, value = spark.read.text(path, lineSep="\n").coalesce(1), parts[0]
        for file in spool.schemas.glob("*.json"):  # in Kafka each event has its schema
            whole = f'"type":"struct","fields":{file.read_text(encoding="utf-8")}'
            value = F.replace(value, F.lit(f'"fields":"spool:{file.stem}"'), F.lit(whole))
        out = lines.select(value.alias("value"), F.get(parts, F.lit(1)).alias("key"), topic.alias("topic"))
        out.write.format("kafka").option("kafka.bootstrap.servers", kafka).save()
    return paths


def _expect_equal(lakes: _Lakes) -> None:
    """Both lakes have the same rows."""
    for name in TABLES:
        rows = [
            lake.spark.read.format("hudi").load(lake.uri(name)).select("id", "name", "city", "amount", "at")
            for lake in (lakes.database, lakes.kafka)
        ]
        assert rows[0].count() == rows[1].count() > 0
        assert rows[0].exceptAll(rows[1]).isEmpty(), name
