"""Spark in this process, for warm measurements. Owns the session and the bare Hudi writes to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.names import IS_DELETED
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.session import start_session
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable

MONTH = "ym"


@contextmanager
def spark_session(folder: Path, memory: str, *, with_kafka: bool = False) -> Iterator[SparkSession]:
    """Yield the session that `sml` would start, with its log in this folder."""
    settings = {"spark.driver.memory": memory}
    target = Target("bench", "bench", "spark", warehouse=str(folder / "warehouse"), spark=settings)
    spark = start_session(target, "bench", log_file=folder / "spark.log", with_kafka=with_kafka)
    try:
        yield spark
    finally:
        spark.stop()


def seconds_of(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def bulk_insert(frame: DataFrame, table: HudiTable) -> None:
    """Write a first load as a hand-written job does, with our write options."""
    hudi_table.write(frame.withColumn(IS_DELETED, F.lit(False)), table, "bulk_insert", {})


def upsert(frame: DataFrame, table: HudiTable) -> None:
    """Write changes, one row per key, as a hand-written job does; `Op`, if there is one, is `D` for deleted rows."""
    if "Op" in frame.columns:
        frame = frame.withColumn(IS_DELETED, F.col("Op") == "D").drop("Op")
    hudi_table.write(frame, table, "upsert", {}, {"hoodie.combine.before.upsert": "false"})


def with_month(frame: DataFrame) -> DataFrame:
    """Add the path-safe month by which orders are partitioned."""
    return frame.withColumn(MONTH, F.date_format("ordered_on", "yyyyMM"))
