"""Which feed reads a table. Owns nothing but that choice."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.engine.feed import Feed
from sqlmesh_like.engine.mor_feed import MergeOnReadFeed
from sqlmesh_like.engine.timeline import Timeline


def feed_of(session: SparkSession, timeline: Timeline) -> Feed:
    """The feed of a Hudi table of either type."""
    return Feed(session, timeline) if timeline.is_cow else MergeOnReadFeed(session, timeline)
