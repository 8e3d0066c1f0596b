"""Ingestion of DMS files beside the barest job: PySpark that reads the same files, and one Hudi write for each table.

The bare job does a bulk insert and upserts with our write options into the same partitions. It has no order, no
duplicates, no schema evolution, no dead letters and no row that moves to another partition. With one table it also runs
as a Structured Streaming job, which is the least that an ingestion by one costs. All run in one session; which of the
two comes first alternates between repetitions, because the second finds compiled code and cached files.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from bench import shop_data
from bench.dms import Change, SourceDatabase
from bench.result import Options, SuiteResult, Timings
from bench.spark import MONTH, bulk_insert, seconds_of, spark_session, upsert, with_month
from sqlmesh_like.project.nodes import PartitionBy
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from tests.spark.ingest_lake import Lake, table

SHARE = 0.001
CHANGES = (Change(SHARE, "scattered"), Change(SHARE, "newest"))
Kind = Literal["cow", "mor"]


@dataclass(frozen=True)
class Case:
    """A number of tables of one kind, which share the orders; `number` identifies the repetition."""

    kind: Kind
    tables: int
    orders: int
    number: int

    @property
    def folder(self) -> str:
        return f"{self.kind}_{self.tables}_{self.number}"

    @property
    def names(self) -> list[str]:
        return [f"orders_{number}" for number in range(self.tables)]


def run(options: Options) -> SuiteResult:
    many = 5 if options.is_quick else 50
    timings = Timings()
    pairs: dict[tuple[Kind, int, str], tuple[float, float]] = {}
    with spark_session(options.folder, options.memory) as spark:
        # Once to warm up the JVM.
        _measure(spark, options.folder, Case("cow", 1, 1000, 0), Timings())
        _measure(spark, options.folder, Case("mor", 1, 1000, 0), Timings())
        for number in range(1, options.repeat + 1):
            for kind in ("cow", "mor"):
                for count in (1, many):
                    case = Case(kind, count, options.orders, number)
                    for change, pair in _measure(spark, options.folder, case, timings).items():
                        pairs[kind, count, change] = pair
            for (kind, count, change), (bare, ours) in pairs.items():
                if kind == "cow":  # the default, compared with a bare job whose author chose the faster type
                    fastest = min(bare, pairs["mor", count, change][0])
                    timings.add(f"default beside the faster type, {_tables(count)}", change, other=fastest, ours=ours)
    return SuiteResult(
        "ingestion",
        f"Ingestion of {options.orders:,} orders into 1 and {many} tables",
        "bare PySpark and Hudi job ÷ sml ingest, of the same files in one session",
        timings.figures(),
    )


def _tables(count: int) -> str:
    return f"{count} table{'s' if count > 1 else ''}"


def _measure(spark: SparkSession, folder: Path, case: Case, timings: Timings) -> dict[str, tuple[float, float]]:
    """Return seconds of the bare job and of ours, by name of the change."""
    root, pairs = folder / case.folder, dict[str, tuple[float, float]]()
    root.mkdir()
    lake, databases = _lake(spark, root, case), [_database(root, name, case) for name in case.names]
    stream = root / "streamed"
    for number, change in enumerate((None, *CHANGES)):
        if change is not None:
            for database in databases:
                database.change(shop_data.statements(change, number, moves=False), number)
        bare, taken = partial(_bare, spark, root, case, number), partial(_expect_taken, lake)
        if case.number % 2:
            other, ours = seconds_of(bare), seconds_of(taken)
        else:
            ours, other = seconds_of(taken), seconds_of(bare)
        name = change.name if change else "first load"
        pairs[name] = (other, ours)
        timings.add(f"{case.kind}, {_tables(case.tables)}", name, other=other, ours=ours, orders=case.orders)
        if case.tables == 1:
            streamed = seconds_of(partial(_stream, spark, root, case, stream, is_first=number == 0))
            timings.add(f"{case.kind}, beside a streaming job", name, other=streamed, ours=ours)
    _expect_same(spark, lake, root, case, databases)
    return pairs


def _database(root: Path, name: str, case: Case) -> SourceDatabase:
    """Return a source with one table of orders; its files are in a folder named `name`."""
    rows = max(100, case.orders // case.tables)
    database = SourceDatabase(name, root / f"{name}.duckdb", root / "landing", {"orders": ("id",)})
    database.load({"orders": shop_data.orders_query(rows, max(50, rows // 20))})
    return database


def _lake(spark: SparkSession, root: Path, case: Case) -> Lake:
    by = PartitionBy(shop_data.PARTITION["column"], shop_data.PARTITION["format"], shop_data.PARTITION["as"])
    declared = tuple(table(n, database=n, table="orders", partition_by=by, table_type=case.kind) for n in case.names)
    return Lake(spark, root, declared, {"format": "dms", "files": "landing/*/*/*.parquet"})


def _expect_taken(lake: Lake) -> None:
    report = lake.run()
    assert not report.failed and not report.dead_letters, report


def _bare(spark: SparkSession, root: Path, case: Case, number: int) -> None:
    name = f"{number:08d}" if number else "LOAD00000001"
    for source in case.names:
        rows = with_month(spark.read.parquet(f"{root}/landing/{source}/orders/{name}.parquet"))
        (upsert if number else bulk_insert)(rows, _layout(root, source, case))


def _stream(spark: SparkSession, root: Path, case: Case, work: Path, *, is_first: bool) -> None:
    """Write the files that are new since the last call by a streaming query."""
    (source,) = case.names
    files = f"{root}/landing/{source}/orders/{'LOAD*' if is_first else '0*'}.parquet"
    layout = HudiTable(f"{work}/table", source, ("id",), MONTH, table_type=case.kind)
    write = bulk_insert if is_first else upsert

    def batch(rows: DataFrame, _: int) -> None:
        write(with_month(rows), layout)

    stream = spark.readStream.schema(spark.read.parquet(files).schema).parquet(files).writeStream.foreachBatch(batch)
    checkpoint = f"{work}/{'load' if is_first else 'changes'}"
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


def _layout(root: Path, name: str, case: Case) -> HudiTable:
    return HudiTable(f"{root}/bare/{name}", name, ("id",), MONTH, table_type=case.kind)


def _expect_same(spark: SparkSession, lake: Lake, root: Path, case: Case, databases: list[SourceDatabase]) -> None:
    """Check that both wrote as many rows as the source has."""
    for name, database in zip(case.names, databases, strict=True):
        rows = database.rows("orders")
        for uri in (lake.uri(name), _layout(root, name, case).uri):
            count = spark.read.format("hudi").load(uri).count()
            assert count == rows, (uri, count, rows)
