"""Spark in this process, for what is measured warm. Owns the session and the bare Hudi writes beside `sml`."""

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
    """The session that `sml` would start, its log in this folder."""
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
    """What a job written by hand does with a first load, with our write options."""
    hudi_table.write(frame.withColumn(IS_DELETED, F.lit(False)), table, "bulk_insert", {})


def upsert(frame: DataFrame, table: HudiTable) -> None:
    """What a job written by hand does with changes of one row a key; `Op`, if any, says which rows are deleted."""
    if "Op" in frame.columns:
        frame = frame.withColumn(IS_DELETED, F.col("Op") == "D").drop("Op")
    hudi_table.write(frame, table, "upsert", {}, {"hoodie.combine.before.upsert": "false"})


def with_month(frame: DataFrame) -> DataFrame:
    """Orders with the path-safe month that they are partitioned by."""
    return frame.withColumn(MONTH, F.date_format("ordered_on", "yyyyMM"))
