"""Reads a small change through the change feed, compared with an aggregate over the whole table.

The change is 0.1% of the orders, deletes included, scattered or newest, in a table partitioned by month, of either
type. It is read from the change log beside its commit, and as that of a foreign writer, who leaves none: by comparing
the files that the commit replaced.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench import shop_data
from bench.dms import Change, SourceDatabase
from bench.result import Options, SuiteResult, Timings
from bench.spark import MONTH, bulk_insert, seconds_of, spark_session, with_month
from sqlmesh_like.cdc.tables.batch_log import log_of_batch
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write

SHARE = 0.001


def run(options: Options) -> SuiteResult:
    timings = Timings()
    shop = shop_data.database(options.folder)
    shop.load(shop_data.queries(options.orders))
    with spark_session(options.folder, options.memory) as spark:
        tables = {kind: _loaded(spark, options.folder, kind) for kind in ("cow", "mor")}
        for number in range(1, 2 * options.repeat + 3):
            # The first of each spread is not counted: the JVM is still compiling.
            change = Change(SHARE, "scattered" if number % 2 else "newest")
            shop.change(shop_data.statements(change, number, moves=False), number)
            for kind, table in tables.items():
                _measure(spark, shop, table, number, timings if number > 2 else Timings(), (kind, change.name))
    return SuiteResult(
        "change_reading",
        f"0.1% of {options.orders:,} orders read as a change",
        "aggregate of the whole table by Hudi's reader ÷ all rows of the change through the feed",
        timings.figures(),
    )


def _loaded(spark: SparkSession, folder: Path, kind: Literal["cow", "mor"]) -> HudiTable:
    table = HudiTable(str(folder / kind), "orders", (KEY,), MONTH, table_type=kind)
    bulk_insert(_rows(spark, f"{folder}/landing/shop/orders/LOAD*.parquet"), table)
    return table


def _rows(spark: SparkSession, path: str) -> DataFrame:
    return with_month(spark.read.parquet(path)).withColumn(KEY, F.col("id").cast("string"))


def _measure(
    spark: SparkSession, shop: SourceDatabase, table: HudiTable, number: int, timings: Timings, names: tuple[str, str]
) -> None:
    kind, change = names
    start = Timeline(table.uri).frontier
    log = _commit(_rows(spark, f"{shop.landing}/shop/orders/{number:08d}.parquet"), table)
    timeline = Timeline(table.uri)
    end = timeline.frontier
    assert start is not None and end is not None and start != end
    feed = change_feed(spark, timeline)
    whole = seconds_of(lambda: _read(_aggregate(spark, table)))
    logged, compared = (
        seconds_of(lambda: _read(feed.logged_changes(start, end))),
        seconds_of(lambda: _read(feed.compared_changes(start, end))),
    )
    facts: dict[str, object] = {"signed_rows": feed.logged_changes(start, end).count()}
    stored = sum(size.bytes for size in timeline.sizes(end).values())
    timings.add(f"{kind}, from its log", change, other=whole, ours=logged, log_bytes=log, table_bytes=stored, **facts)
    timings.add(f"{kind}, without a log", change, other=whole, ours=compared, **facts)


def _commit(rows: DataFrame, table: HudiTable) -> int:
    """Upsert rows with a change log, as an ingestion does; return the bytes of the log."""
    rows = rows.withColumn(IS_DELETED, F.col("Op") == "D").drop("Op").cache()
    log = log_of_batch(rows, table, rows.count())
    assert log is not None
    write(rows, table, "upsert", log.metadata, {"hoodie.combine.before.upsert": "false"})
    rows.unpersist()
    return sum(file.bytes for file in log.files)


def _aggregate(spark: SparkSession, table: HudiTable) -> DataFrame:
    return spark.read.format("hudi").load(table.uri).groupBy("device_id").agg({"amount": "sum", "*": "count"})


def _read(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
