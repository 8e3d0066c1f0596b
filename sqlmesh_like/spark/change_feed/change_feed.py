"""The choice of the feed that reads a table, and changes as they are shown to users."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.change_feed.mor_change_feed import MergeOnReadFeed


def change_feed(session: SparkSession, timeline: Timeline) -> CopyOnWriteFeed:
    """The feed of a Hudi table of either type."""
    return CopyOnWriteFeed(session, timeline) if timeline.is_cow else MergeOnReadFeed(session, timeline)


def described(signed: DataFrame) -> DataFrame:
    """Signed rows of a table with `_change` instead of weights; rows rewritten without a change are left out.

    A key that leaves and enters is an update. Rows with the same key and values cancel out one by one.
    """
    columns = [f"`{name}`" for name in signed.columns if name not in (KEY, WEIGHT)]
    netted = signed.groupBy(f"`{KEY}`", *columns).agg(F.sum(WEIGHT).alias(WEIGHT)).where(F.col(WEIGHT) != 0)
    row = Window.partitionBy(KEY)
    is_update = (F.min(WEIGHT).over(row) < 0) & (F.max(WEIGHT).over(row) > 0)
    called = (
        F.when(is_update & (F.col(WEIGHT) < 0), "update_before")
        .when(is_update, "update_after")
        .when(F.col(WEIGHT) < 0, "delete")
        .otherwise("insert")
    )
    named = netted.withColumn("_change", called).orderBy(KEY, WEIGHT)
    return named.select("_change", *columns)
