"""The write cost of a table according to its timeline, without a JVM. Owns which commits count, not their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from sqlmesh_like.hudi.bucket_count import best_buckets, known_buckets
from sqlmesh_like.hudi.history import commit_summary
from sqlmesh_like.hudi.reading.recent_timelines import timeline_at
from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.write_cost import WriteCost, write_cost

_NEWEST = 5


def write_cost_of(catalog: Catalog, unique_id: str, options: Mapping[str, str]) -> WriteCost | None:
    """The cost of a table's newest upserts; None for tables of other writers and without upserts."""
    state = catalog.state(unique_id)
    if state.frontier is None or state.kind not in ("cow", "mor"):
        return None
    timeline = timeline_at(state.uri, state.frontier)
    upserts = (commit for commit in timeline.newest_first() if commit.is_data and commit.operation == "UPSERT")
    newest = [commit_summary(commit) for commit in islice((c for c in upserts if c.writes), _NEWEST)]
    buckets = known_buckets(timeline)
    if not newest or buckets is None:
        return None
    volume = catalog.history.volume(state.uri, state.frontier)
    wanted = best_buckets(volume, buckets, options)
    return write_cost(unique_id, state.kind, newest, volume, wanted, is_local=timeline.folder.is_local)
