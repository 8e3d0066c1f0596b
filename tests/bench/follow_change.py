"""Work follows the change: four models over lakes of several sizes, a thousandth of the rows changed in recent months.

    make bench            # or: python -m tests.bench.follow_change --rows 1000000 5000000

For each model and size it prints what the run after the change wrote and read, beside what a full refresh of the same
table read, and both times as a ratio: absolute times say more of a machine than of a program.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.engine import tables
from sqlmesh_like.engine.commits import Slice
from sqlmesh_like.engine.feed import Feed
from sqlmesh_like.engine.session import start_session
from sqlmesh_like.engine.tables import HudiTable, Operation
from sqlmesh_like.names import Schema
from sqlmesh_like.run.result import ModelResult
from tests.spark.lake import Lake

MONTHS = 24
PEOPLE = 20_000
MODELS = {
    "big_orders": "select id, ym, buyer, amount * 2 as doubled from @orders where amount >= 500",
    "product_months": (
        "select ym, product, sum(amount) as total, count(*) as n, max(amount) as most from @orders group by ym, product"
    ),
    "city_months": (
        "select o.ym, p.city, sum(o.amount) as total, count(*) as n "
        "from @orders o join @people p on o.buyer = p.id group by o.ym, p.city"
    ),
    "best_orders": (
        "select id, ym, product, amount from @orders "
        "qualify row_number() over (partition by ym, product order by amount desc, id) <= 3"
    ),
}


@dataclass(frozen=True)
class Read:
    """Data files of inputs and of the target itself that a run read, and their bytes."""

    files: int
    bytes: int


@dataclass(frozen=True)
class Measure:
    """One model at one size; `full` is the refresh of the same table."""

    rows: int
    result: ModelResult
    read: Read
    full: ModelResult
    full_read: Read


def measure(sizes: Sequence[int]) -> list[Measure]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        spark = _session(root)
        try:
            return [found for rows in sizes for found in _at(spark, root / str(rows), rows)]
        finally:
            spark.stop()


def _session(root: Path) -> SparkSession:
    settings = {
        "spark.driver.memory": "4g",
    }
    (root / "session").mkdir()
    target = Lake(None, root / "session").target()  # type: ignore[arg-type]
    return start_session(replace(target, spark=settings), "bench", log_file=root / "spark.log")


def _at(spark: SparkSession, root: Path, rows: int) -> list[Measure]:
    root.mkdir()
    lake = Lake(spark, root)
    orders = lake.source("orders", "", partition="ym").layout
    people = lake.source("people", "").layout
    _write(_orders(spark.range(rows), rows), orders, "bulk_insert")
    _write(
        spark.range(PEOPLE).select("id", F.concat(F.lit("c"), F.col("id") % 50).alias("city")), people, "bulk_insert"
    )
    for name, sql in MODELS.items():
        lake.model(name, "{{ config(partition_by='ym', refresh='incremental') }} " + sql)
    lake.run_well()
    changed = spark.range(rows // 1000).select((F.lit(rows - 1) - F.col("id") * 20).alias("id"))
    _write(_orders(changed, rows).withColumn("amount", (F.col("amount") + 1).cast("decimal(12,2)")), orders, "upsert")
    followed = {name: _run(lake, name, full_refresh=False) for name in MODELS}
    full = {name: _run(lake, name, full_refresh=True) for name in MODELS}
    return [Measure(rows, *followed[name], *full[name]) for name in MODELS]


def _run(lake: Lake, name: str, *, full_refresh: bool) -> tuple[ModelResult, Read]:
    with _counted() as files:
        result = lake.run(name, full_refresh=full_refresh)[name]
    return result, Read(len(files), sum(path.stat().st_size for path in files))


@contextmanager
def _counted() -> Iterator[set[Path]]:
    """The data files that the feed hands to Spark, each once."""
    read, files = Feed._read, set[Path]()

    def counting(feed: Feed, slices: Iterable[Slice], schema: Schema) -> DataFrame:
        chosen = list(slices)
        files.update(Path(feed._timeline.uri) / found.path for found in chosen)
        return read(feed, chosen, schema)

    with mock.patch.object(Feed, "_read", counting):
        yield files


def _orders(ids: DataFrame, total: int) -> DataFrame:
    """Orders by id, the newest ids in the newest months; a multiple of `id` stands in for chance."""
    month = (F.col("id") * MONTHS / F.lit(total)).cast("int")
    scrambled = (F.col("id") * 7919) % 10_007
    return ids.select(
        F.col("id"),
        (scrambled % PEOPLE).alias("buyer"),
        (scrambled % 97).alias("product"),
        (scrambled / 10).cast("decimal(12,2)").alias("amount"),
        F.lpad(month.cast("string"), 2, "0").alias("ym"),
    )


def _write(frame: DataFrame, table: HudiTable, operation: Operation) -> None:
    tables.write(frame, table, operation, {"by": "ingestion"})


def report(measures: Sequence[Measure]) -> str:
    head = "rows model strategy rows_out kB_out files_in kB_in time/full".split()
    lines = ["{:>9}  {:15} {:16} {:>9} {:>8} {:>14} {:>18} {:>9}".format(*head)]
    for found in measures:
        written = found.result.written
        lines.append(
            f"{found.rows:>9}  {found.result.model.name:15} {found.result.strategy!s:16} {found.result.rows:>9} "
            f"{(written.bytes if written else 0) // 1024:>8} "
            f"{found.read.files:>5} of {found.full_read.files:>4} "
            f"{found.read.bytes // 1024:>6} of {found.full_read.bytes // 1024:>6} "
            f"{found.result.seconds / found.full.seconds:>9.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 5_000_000])
    print(report(measure(parser.parse_args().rows)))


if __name__ == "__main__":
    main()
