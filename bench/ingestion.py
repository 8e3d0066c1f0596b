"""Ingestion of one large table against Hudi's bare writes of the same rows, as ratios within one run.

`python -m bench.ingestion DIR SCALE [cow|mor]`: lineitem of TPC-H as files of DMS, partitioned by month.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from bench.tpch_data import Change, Database
from sqlmesh_like.engine.feeds import feed_of
from sqlmesh_like.engine.session import start_session
from sqlmesh_like.engine.tables import DELETED, HudiTable, Operation, write
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.errors import Location
from sqlmesh_like.ingest.stream import ingest_source
from sqlmesh_like.names import TableName
from sqlmesh_like.project.spec import IngestSource, IngestTable, ParsedProject, PartitionBy, Source, SourceTable, Target

KEY = ("l_orderkey", "l_linenumber")
MONTH = PartitionBy("l_shipdate", "yyyyMM", "l_month")


def timed(what: str, work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    seconds = perf_counter() - started
    print(f"  {what:40} {seconds:7.2f} s", flush=True)
    return seconds


def bare(spark: SparkSession, files: list[str], uri: str, operation: Operation, kind: str, buckets: int = 1) -> None:
    """The rows of files written as they are."""
    read = spark.read.parquet(*files)
    gone = "Op = 'D'" if "Op" in read.columns else "false"
    rows = read.selectExpr(
        "concat(l_orderkey, '|', l_linenumber) as _sml_key",
        *(f"`{name}`" for name in read.columns if name != "Op"),
        "date_format(l_shipdate, 'yyyyMM') as l_month",
        f"{gone} as {DELETED}",
    )
    table = HudiTable(uri, "bare", ("_sml_key",), "l_month", table_type=kind, buckets=buckets, tasks=max(2, buckets))  # type: ignore[arg-type]
    write(rows, table, operation, {}, {"hoodie.combine.before.upsert": "false"})


def ingest(spark: SparkSession, root: Path, kind: str) -> None:
    location = Location("sources.yml", 1, 1)
    own = IngestTable("tpch", "lineitem", KEY, partition_by=MONTH)
    own = replace(own, table_type=kind)  # type: ignore[arg-type]
    table = SourceTable("source.p.t.lineitem", "t", "lineitem", TableName("ods", "lineitem"), None, "hudi", own,
                        (), "", (), {}, location)  # fmt: skip
    source = Source("t", "ods", IngestSource("dms", files="landing/*/lineitem/*.parquet"), (table,), "", location)
    project = ParsedProject("p", root, "", None, "target", (), {}, (), (), (source,), (), ())
    report = ingest_source(spark, project, Target("p", "t", "spark", warehouse=f"{root}/warehouse"), source)
    assert not report.failed, report
    print("   ", report.tables)


def count(frame: DataFrame) -> Callable[[], object]:
    return lambda: frame.selectExpr("sum(l_quantity)", "sum(l_extendedprice)", "count(*)").collect()


def main(root: Path, scale: float, kind: str) -> None:
    spark = start_session(Target("p", "t", "spark", warehouse=str(root), spark={"spark.driver.memory": "4g"}))
    spark.sparkContext.setLogLevel("ERROR")
    for name, size in (("warm", 0.001), ("full", scale)):
        lake = root / name
        shutil.rmtree(lake, ignore_errors=True)
        lake.mkdir(parents=True)
        database = Database(lake, lake / "landing")
        database.load(size)
        print(f"{name} {size} {kind}: {database.rows('lineitem')} rows", flush=True)
        folder, number = lake / "landing" / "tpch" / "lineitem", 1
        first = str(folder / "LOAD00000001.parquet")
        base, ods = f"{lake}/bare", f"{lake}/warehouse/ods/lineitem"
        own_bare = timed("bare bulk_insert", lambda f=first, u=base: bare(spark, [f], u, "bulk_insert", kind))
        ours = timed("ingest", lambda at=lake: ingest(spark, at, kind))
        print(f"  first load / bare: {ours / own_bare:.2f}")
        for spread in ("scattered", "newest"):
            print(spread, database.change(Change(0.001, spread), number), flush=True)
            file = str(folder / f"{number:08d}.parquet")
            number += 1
            own_bare = timed("bare upsert", lambda f=file, u=base: bare(spark, [f], u, "upsert", kind))
            ours = timed("ingest", lambda at=lake: ingest(spark, at, kind))
            print(f"  batch / bare: {ours / own_bare:.2f}")
        timeline = Timeline(ods)
        start, end = (commit.instant.frontier for commit in timeline.data_commits[-3:-1])
        print("  scattered change:", end=" ")
        timed("read change", lambda t=timeline, a=start, b=end: count(feed_of(spark, t).changes(a, b))())
        timed("read snapshot", count(spark.read.format("hudi").load(ods)))
        sizes = Timeline(ods).sizes(Timeline(ods).frontier or "")
        print(f"  {len(sizes)} file groups, {sum(s.bytes for s in sizes.values()) / 1e6:.1f} MB", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "cow")
