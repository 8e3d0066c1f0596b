"""A few rows of a frame on the driver. Owns fetching them within the JVM, and the frame that begins there.

A frame in Spark's cache brings its history into every plan that is derived from it: plans of plans of plans, printed
each time, grow without bound. A frame of rows at hand has none, Spark knows its size exactly, and to filter it, to
count it or to send it to executors starts no job. Python never sees the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

_ALL_PARTITIONS = 1_000_000
"""Spark looks for the first rows in one partition, then in some, then in more: a job each time."""


@dataclass(frozen=True)
class LocalFrame:
    """A frame of `rows` rows that the driver holds."""

    frame: DataFrame
    rows: int


def local_frame(frame: DataFrame, most: int) -> LocalFrame | None:
    """The rows of a frame, fetched in one job; None where there are more than `most`."""
    spark, jvm = frame.sparkSession, frame.sparkSession._jvm
    assert jvm is not None, "a running session has a JVM"
    spark.conf.set("spark.sql.limit.initialNumPartitions", str(_ALL_PARTITIONS))
    rows = frame.limit(most + 1)._jdf.queryExecution().executedPlan().executeCollect()
    count = len(rows)
    if count > most:
        return None
    output = frame._jdf.queryExecution().analyzed().output()
    local = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation(
        output, jvm.scala.collection.mutable.WrappedArray.make(rows), False
    )
    made = jvm.org.apache.spark.sql.Dataset.ofRows(spark._jsparkSession, local)
    return LocalFrame(DataFrame(made, spark), count)
