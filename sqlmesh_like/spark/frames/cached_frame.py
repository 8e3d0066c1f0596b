"""Frames that are read several times. Owns caching them, and that what is built on them is planned quickly.

Spark analyses the whole history of a frame again for every step that is added to it, also what is in memory already,
and Hudi's own rules make that more costly with each step: a batch would wait longer for its plans than for its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CachedFrame:
    """A frame in memory from its first use until `release`. `frame` begins there: it has no history."""

    frame: DataFrame
    origin: DataFrame

    def release(self) -> None:
        self.origin.unpersist()


def cached(frame: DataFrame) -> CachedFrame:
    """Keep a frame in memory."""
    origin = frame.persist()
    spark, jvm = origin.sparkSession, origin.sparkSession._jvm
    assert jvm is not None
    in_memory = origin._jdf.queryExecution().withCachedData()
    begun = jvm.org.apache.spark.sql.Dataset.ofRows(spark._jsparkSession, in_memory)
    return CachedFrame(DataFrame(begun, spark), origin)
