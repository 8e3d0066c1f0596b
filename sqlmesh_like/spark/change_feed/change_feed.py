"""Which feed reads a table. Owns nothing but that choice."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.change_feed.mor_change_feed import MergeOnReadFeed


def change_feed(session: SparkSession, timeline: Timeline) -> CopyOnWriteFeed:
    """The feed of a Hudi table of either type."""
    return CopyOnWriteFeed(session, timeline) if timeline.is_cow else MergeOnReadFeed(session, timeline)
