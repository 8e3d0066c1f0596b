"""A few rows of a frame on the driver. Owns fetching them within the JVM, and the frame of these rows.

A frame in Spark's cache adds its plan to every plan that is derived from it: nested plans, printed each time, grow
without bound. A frame of local rows has no such plan, Spark knows its size exactly, and filtering, counting or
broadcasting it starts no job. The rows never reach Python.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

_ALL_PARTITIONS = 1_000_000
"""Makes `limit` read all partitions at once: Spark would start with one, then read more, with a job each time."""


@dataclass(frozen=True)
class LocalFrame:
    """A frame of `rows` rows in the driver's memory."""

    frame: DataFrame
    rows: int


def local_frame(frame: DataFrame, most: int) -> LocalFrame | None:
    """Fetch the rows of a frame in one job; None where there are more than `most`."""
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
