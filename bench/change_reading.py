"""Reads a small change through the change feed, compared with an aggregate over the whole table.

The change is 0.1% of the orders, deletes included, scattered or newest, in a table partitioned by month, of either
type.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from bench import shop_data
from bench.dms import Change, SourceDatabase
from bench.result import Options, SuiteResult, Timings
from bench.spark import MONTH, bulk_insert, seconds_of, spark_session, upsert, with_month
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables.hudi_table import HudiTable

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
    table = HudiTable(str(folder / kind), "orders", ("id",), MONTH, table_type=kind)
    bulk_insert(with_month(spark.read.parquet(f"{folder}/landing/shop/orders/LOAD*.parquet")), table)
    return table


def _measure(
    spark: SparkSession, shop: SourceDatabase, table: HudiTable, number: int, timings: Timings, names: tuple[str, str]
) -> None:
    timeline = Timeline(table.uri)
    start = timeline.frontier
    upsert(with_month(spark.read.parquet(f"{shop.landing}/shop/orders/{number:08d}.parquet")), table)
    timeline = Timeline(table.uri)
    end = timeline.frontier
    assert start is not None and end is not None and start != end

    def follow() -> None:
        change_feed(spark, Timeline(table.uri)).changes(start, end).write.format("noop").mode("overwrite").save()

    def aggregate() -> None:
        frame = spark.read.format("hudi").load(table.uri).groupBy("device_id").agg({"amount": "sum", "*": "count"})
        frame.write.format("noop").mode("overwrite").save()

    ours, other = seconds_of(follow), seconds_of(aggregate)
    rows = change_feed(spark, timeline).changes(start, end).count()
    timings.add(*names, other=other, ours=ours, signed_rows=rows)
