"""How much history tables keep. Owns the rule; the engine removes the rest.

Nothing that a model of the project has not consumed yet is removed, up to a cap: a consumer further behind than that is
rebuilt in full, and says so. Cleaning runs after a run and only once enough commits have gathered, never in a commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlmesh_like.plan.catalog import Catalog

AT_LEAST = 10
"""Commits kept even where every consumer has read them: for time travel and a look at what happened."""
AT_MOST = 200
"""Commits kept for the slowest consumer."""
SLACK = 10
"""A table is cleaned when it has this many commits more than it keeps."""


@dataclass(frozen=True)
class Cleaning:
    """Remove the history of one table but its newest `retain` data commits."""

    uri: str
    retain: int


def due(catalog: Catalog, owned: Iterable[str], slack: int = SLACK) -> tuple[Cleaning, ...]:
    """Tables of ours (by unique id), borrowed ones left out, whose history has grown past what is kept, by `slack`."""
    needed = _oldest_frontiers(catalog)
    cleanings: list[Cleaning] = []
    for unique_id in (unique_id for unique_id in owned if unique_id not in catalog.borrowed):
        state = catalog.state(unique_id)
        if state.frontier is None or state.kind not in ("cow", "mor"):
            continue
        behind = [
            catalog.history.pending_commits(state.uri, start, state.frontier) for start in needed.get(unique_id, ())
        ]
        retain = retained(max(behind, default=0), catalog.history.uncompacted(state.uri))
        if catalog.history.exceeds(state.uri, retain + slack):
            cleanings.append(Cleaning(state.uri, retain))
    return tuple(cleanings)


def retained(behind: int, uncompacted: int = 0) -> int:
    """Data commits to keep for a slowest consumer that is this many behind: those, and the one it stands on.

    And those that log files were written by since the last compaction: readers need their change logs.

    >>> retained(0), retained(30), retained(1000), retained(0, 15)
    (10, 31, 200, 16)
    """
    return min(AT_MOST, max(AT_LEAST, behind + 1, uncompacted + 1))


def _oldest_frontiers(catalog: Catalog) -> dict[str, list[str]]:
    """For each table the frontiers that its consumers have recorded."""
    frontiers: dict[str, list[str]] = {}
    for unique_id, place in catalog.places.items():
        if place.unique_id.kind != "model" or unique_id in catalog.borrowed:
            continue
        record = catalog.state(unique_id).record
        for input_id, frontier in (record.frontier if record else {}).items():
            frontiers.setdefault(input_id, []).append(frontier)
    return frontiers
