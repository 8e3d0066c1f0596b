"""How many buckets a table has, and how many it should have. Owns where the number is stored; needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.file_sizing import BUCKETS, buckets_for
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord, Volume

BUCKETS_KEY = "buckets"
"""Metadata of ingested tables: their number of buckets. Derived tables have it in their record."""
CARRIED = ("ingest", "made", "spellings")
"""Metadata of ingested tables that outlives its commit: the last batch, how keys are made, how columns are spelt."""


def known_buckets(timeline: Timeline) -> int | None:
    """In how many buckets a table of ours puts the rows of a partition; None for others."""
    if (text := timeline.extra(STATE_PREFIX + BUCKETS_KEY)) is not None:
        return int(text)
    record = timeline.extra(STATE_PREFIX + RECORD_KEY)
    return TableRecord.from_json(record).buckets if record else None


def best_buckets(volume: Volume, known: int, options: Mapping[str, str]) -> int:
    """In how many a table of this size should put them; `known` are near enough where files become half or double.

    >>> best_buckets(Volume(bytes=10**9, partitions=2), 3, {}), best_buckets(Volume(bytes=10**9, partitions=2), 13, {})
    (3, 4)
    """
    result = buckets_for(volume.bytes, volume.partitions, options)
    return result if BUCKETS in options or result >= 2 * known or 2 * result <= known else known
