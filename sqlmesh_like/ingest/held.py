"""Frames that are read several times. Owns keeping them in memory, and that what is built on them is planned quickly.

Spark analyses the whole history of a frame again for every step that is added to it, also what is in memory already,
and Hudi's own rules make that dearer with each step: a batch would wait longer for its plans than for its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Held:
    """A frame in memory from its first use until `release`. `frame` has no history: its rows are all it is made of."""

    frame: DataFrame
    origin: DataFrame

    def release(self) -> None:
        self.origin.unpersist()


def held(frame: DataFrame) -> Held:
    """Keep a frame in memory."""
    origin = frame.persist()
    spark = origin.sparkSession
    rows = origin._jdf.queryExecution().toRdd()
    leaf = spark._jsparkSession.internalCreateDataFrame(rows, origin._jdf.schema(), False)
    return Held(DataFrame(leaf, spark), origin)
