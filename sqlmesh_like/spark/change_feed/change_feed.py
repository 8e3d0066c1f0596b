"""The choice of the feed that reads a table, and changes as they are shown to users."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.hudi.reading.change_plan import KIND_OF_CHANGE
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.change_feed.mor_change_feed import MergeOnReadFeed


def change_feed(session: SparkSession, timeline: Timeline) -> CopyOnWriteFeed:
    """The feed of a Hudi table of either type."""
    return CopyOnWriteFeed(session, timeline) if timeline.is_cow else MergeOnReadFeed(session, timeline)


def label_changes(signed: DataFrame) -> DataFrame:
    """Signed rows of a table with `_change` instead of weights; rows rewritten without a change are left out.

    Rows with the same key and values cancel out one by one.
    """
    columns = [f"`{name}`" for name in signed.columns if name not in (KEY, WEIGHT)]
    netted = signed.groupBy(f"`{KEY}`", *columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    named = netted.withColumn("_change", F.expr(KIND_OF_CHANGE)).orderBy(KEY, WEIGHT)
    return named.select("_change", *columns)
