"""The number of buckets that a table has, and that it should have. Owns where it is stored; needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.file_sizing import BUCKETS, buckets_for
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.history import RECORD_KEY, TableRecord, Volume

BUCKETS_KEY = "buckets"
"""Key in commit metadata of ingested tables: their number of buckets. Derived tables have it in their record."""
CARRIED = ("ingest", "made", "spellings")
"""Keys in commit metadata of ingested tables that a rewrite must copy: last batch, creation contract, spellings."""


def known_buckets(timeline: Timeline) -> int | None:
    """The number of buckets per partition of a table that this project writes; None for other tables."""
    if (text := timeline.extra(STATE_PREFIX + BUCKETS_KEY)) is not None:
        return int(text)
    record = timeline.extra(STATE_PREFIX + RECORD_KEY)
    return TableRecord.from_json(record).buckets if record else None


def best_buckets(volume: Volume, known: int, options: Mapping[str, str]) -> int:
    """The number of buckets for a table of this size; it stays `known` unless it would at least double or halve.

    >>> best_buckets(Volume(bytes=10**9, partitions=2), 3, {}), best_buckets(Volume(bytes=10**9, partitions=2), 13, {})
    (3, 4)
    """
    result = buckets_for(volume.bytes, volume.partitions, options)
    return result if BUCKETS in options or result >= 2 * known or 2 * result <= known else known
