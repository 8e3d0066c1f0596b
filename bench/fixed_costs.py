"""The fixed costs of a run: start, empty run, and one-row changes of 1, 10 and 50 models.

They are compared with bare Hudi upserts of one row into as many tables, with as many threads, in one session: warm in a
session that has done it before, cold in a separate process (`python -m bench.fixed_costs FOLDER COUNT MEMORY`). An
ingestion is also compared with a streaming job that parses the same file and does one bare upsert for each table
(`python -m bench.fixed_costs FOLDER LANDING MEMORY`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.lake import Lake
from bench.program import IMPORTABLE, python, run_program
from bench.result import Options, SuiteResult, Timings
from bench.spark import seconds_of, spark_session, upsert
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from tests.spark.lake import Lake as WarmLake
from tests.spark.lake import Table

COUNTS = (1, 10, 50)
THREADS = 4
ROWS = 1_000
INGESTED = ("orders", "lines", "customers")
_COLUMNS = "id bigint, device int, amount decimal(12,2)"


def run(options: Options) -> SuiteResult:
    """Measure warm runs, then cold ones."""
    counts = COUNTS[:2] if options.is_quick else COUNTS
    names = [f"device_{number:02}" for number in range(max(counts))]
    project = Lake(options.folder / "lake")
    timings = Timings()
    with spark_session(options.folder, options.memory) as spark:
        project.root.mkdir()
        lake = WarmLake(spark, project.root)
        project.write_settings("shop", options.memory, THREADS)
        orders = lake.source("orders", _COLUMNS)
        orders.upsert(*([number, number % 10, None] for number in range(ROWS)))
        for name in names:
            lake.model(name, "{{ config(refresh='incremental') }} select device, count(*) as n, sum(amount) as total"
                       " from @orders group by device")  # fmt: skip
        lake.run_well(threads=THREADS)
        for repetition in range(options.repeat + 1):
            # The first is not counted: it creates the bare tables, and the JVM is still compiling.
            at = timings if repetition else Timings()
            for count in counts:
                _warm(spark, options.folder / "bare", lake, orders, names[:count], at)
    shop = _shop(options)
    _bare_process(options, shop.root / "landing")  # its first rows
    for repetition in range(options.repeat):
        _cold(project, options, names, counts, timings)
        _cold_ingestion(shop, options, repetition + 1, timings)
    return SuiteResult(
        "fixed_costs",
        "Fixed costs of a run",
        "bare Hudi upserts of one row into as many tables ÷ run of models that one row changes",
        timings.figures(),
    )


def _warm(
    spark: SparkSession, bare: Path, lake: WarmLake, orders: Table, names: Sequence[str], timings: Timings
) -> None:
    other = seconds_of(lambda: upsert_one_row_each(spark, bare, len(names)))
    _change_one_row(orders)
    ours = seconds_of(lambda: _expect_followed(lake, names))
    timings.add("warm", _models(len(names)), other=other, ours=ours)


def _change_one_row(orders: Table) -> None:
    orders.upsert((len(orders.timeline.commits) + ROWS, 3, Decimal(1)))


def _expect_followed(lake: WarmLake, names: Sequence[str]) -> None:
    results = lake.run(*names, threads=THREADS)
    assert all(result.status == "success" for result in results.values()), results


def _cold(project: Lake, options: Options, names: Sequence[str], counts: Sequence[int], timings: Timings) -> None:
    """Do the same in separate processes; the first figure is the start of a session alone."""
    project.sml("run")  # applies pending changes of the warm runs
    start = _bare_process(options, 0)
    timings.add("cold", "nothing to do (beside the start of a session)", other=start, ours=project.sml("run").seconds)
    for count in counts:
        other = _bare_process(options, count)
        with spark_session(options.folder, options.memory) as spark:
            _change_one_row(WarmLake(spark, project.root, fresh=False).source("orders", _COLUMNS))
        called = project.sml("run", "--select", *names[:count])
        assert all(node.status == "success" for node in called.nodes.values()), called
        timings.add("cold", _models(count), other=other, ours=called.seconds, peak_bytes=called.peak_bytes)


def _shop(options: Options) -> Lake:
    """Return a project that ingests Debezium events of three tables from files, with their first rows ingested."""
    shop = Lake(options.folder / "shop")
    shop.root.mkdir()
    shop.write_settings("shop", options.memory, THREADS)
    tables = [{"name": name, "ingest": {"database": "db", "table": name, "primary_key": ["id"]}} for name in INGESTED]
    stream = {"format": "debezium", "files": {"path": "landing/*.jsonl"}}
    source = {"name": "shop", "schema": "ods", "ingest": stream, "tables": tables}
    shop.write_yaml("models/sources.yml", {"version": 2, "sources": [source]})
    _land(shop, 0, ROWS)
    shop.sml("ingest")
    return shop


def _land(shop: Lake, number: int, rows: int) -> None:
    """Write a file of events: `rows` inserts or updates in each table, with the same keys each time."""
    events = [
        {"before": None, "after": {"id": id, "name": f"{number}-{id}", "amount": id * number},
         "source": {"db": "db", "table": table}, "op": "u" if number else "c", "ts_ms": 1_700_000_000_000 + number}
        for id in range(rows) for table in INGESTED
    ]  # fmt: skip
    shop.write(f"landing/{number:06}.jsonl", "".join(json.dumps(event) + "\n" for event in events))


def _cold_ingestion(shop: Lake, options: Options, number: int, timings: Timings) -> None:
    """Ingest 75 events into three tables, beside one bare upsert in a session of its own, and a bare streaming job."""
    other = _bare_process(options, 1)
    _land(shop, number, 25)
    called = shop.sml("ingest")
    streamed = _bare_process(options, shop.root / "landing")
    timings.add("cold", "ingestion of 75 events into 3 tables", other=other, ours=called.seconds)
    timings.add("cold", "the same, beside a bare streaming job", other=streamed, ours=called.seconds)


def _bare_process(options: Options, work: int | Path) -> float:
    words = python("bench.fixed_costs", str(options.folder / "bare"), str(work), options.memory)
    return run_program(words, options.folder, IMPORTABLE).seconds


def _models(count: int) -> str:
    return f"{count} model{'s' if count > 1 else ''}"


def upsert_one_row_each(spark: SparkSession, folder: Path, count: int) -> None:
    """Upsert one row into each of `count` tables, as many at a time as a run has threads."""
    row = spark.range(1).selectExpr("id", "cast(3 as int) as device", "cast(1 as decimal(12,2)) as amount")
    tables = [HudiTable(str(folder / f"t{number:02}"), f"t{number:02}", ("id",)) for number in range(count)]
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda table: upsert(row, table), tables))


def stream_events(spark: SparkSession, folder: Path, landing: Path) -> None:
    """Ingest all events of the folder that are new since the last call: one bare upsert for each table and batch."""
    row = "struct<id: bigint, name: string, amount: bigint>"

    def batch(lines: DataFrame, _: int) -> None:
        events = lines.selectExpr(f"from_json(value, 'after {row}, source struct<table: string>') as event")
        events = events.selectExpr("event.source.table", "event.after.*").cache()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda name: write(events, name), INGESTED))
        events.unpersist()

    def write(events: DataFrame, name: str) -> None:
        own = events.where(events["table"] == name).drop("table")
        upsert(own, HudiTable(str(folder / f"streamed_{name}"), name, ("id",)))

    stream = spark.readStream.text(str(landing)).writeStream.foreachBatch(batch)
    query = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def main() -> None:
    folder, work, memory = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with spark_session(folder, memory) as spark:
        if work.isdigit():
            upsert_one_row_each(spark, folder, int(work))
        else:
            stream_events(spark, folder, Path(work))


if __name__ == "__main__":
    main()
