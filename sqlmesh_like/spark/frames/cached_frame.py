"""Frames that are read several times. Owns caching them, and that frames built on them are planned quickly.

Spark analyses the whole plan of a frame again for every step that is added to it, including cached parts, and Hudi's
rules make that more costly with each step: a batch would spend more time on planning than on its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class CachedFrame:
    """A frame in memory from its first use until `release`. The plan of `frame` begins at the cached rows."""

    frame: DataFrame
    origin: DataFrame

    def release(self) -> None:
        self.origin.unpersist()


def cached(frame: DataFrame) -> CachedFrame:
    """Cache a frame; the caller releases it."""
    from pyspark.sql import DataFrame

    origin = frame.persist()
    spark, jvm = origin.sparkSession, origin.sparkSession._jvm
    assert jvm is not None
    in_memory = origin._jdf.queryExecution().withCachedData()
    begun = jvm.org.apache.spark.sql.Dataset.ofRows(spark._jsparkSession, in_memory)
    return CachedFrame(DataFrame(begun, spark), origin)
