"""How much history tables keep. Owns the rule; the engine removes the rest.

Nothing that a model of the project has not read yet is removed for a number of days (`retention_days` of the profile).
An unfinished build in slices goes on reading the inputs as its first slice did. A model further behind than that holds
back nothing: its next run is a full refresh, and says so. Cleaning runs after a run and only once enough commits have
gathered, never in a commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from sqlmesh_like.plan.catalog import Catalog
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.slices.sliced_build import unfinished_build

AT_LEAST = 10
"""Commits kept even if every consumer has read them: for time travel, and to see what happened."""
SLACK = 10
"""A table is cleaned when it has this many commits more than it keeps."""


@dataclass(frozen=True)
class Cleaning:
    """Remove the history of one table except its newest `retain` data commits."""

    uri: str
    retain: int


def horizon(days: int, now: datetime | None = None) -> str:
    """The instant this many days ago; empty, which is before any instant, where no date is that long ago.

    >>> horizon(7, datetime(2024, 5, 8, 12, tzinfo=UTC)), horizon(10**12)
    ('20240501120000000', '')
    """
    now = now or datetime.now(UTC)
    return f"{now - timedelta(days=days):%Y%m%d%H%M%S}000" if days < now.toordinal() else ""


Frontiers = Mapping[str, Collection[str]]
"""Of each table, by unique id."""


def due(
    catalog: Catalog, owned: Iterable[str], since: str, slack: int = SLACK, released: Frontiers = MappingProxyType({})
) -> tuple[Cleaning, ...]:
    """The cleanings that are due: of `owned`, not borrowed tables with over `slack` commits more than are kept.

    `since`: an instant; a model holds back no history if its first unread commit completed earlier. `released`: commits
    whose files are kept however old they are.
    """
    ours = [unique_id for unique_id in owned if unique_id not in catalog.borrowed]
    models = [unique_id for unique_id, place in catalog.places.items() if place.unique_id.kind == "model"]
    readers = [unique_id for unique_id in models if unique_id not in catalog.borrowed]
    states = catalog.states(dict.fromkeys([*readers, *ours]))
    begun = [unfinished_build(states[unique_id], catalog.history, rebuilds=False) for unique_id in readers]
    needed = _oldest_frontiers([*(states[unique_id] for unique_id in readers), *filter(None, begun)])
    cleanings: list[Cleaning] = []
    for unique_id in ours:
        state = states[unique_id]
        if state.frontier is None or state.kind not in ("cow", "mor"):
            continue
        unread = [catalog.history.unread_commits(state.uri, start, since) for start in needed.get(unique_id, ())]
        kept = [catalog.history.unread_commits(state.uri, start, "") for start in released.get(unique_id, ())]
        retain = commits_to_retain(max([*unread, *kept], default=0), catalog.history.uncompacted_commits(state.uri))
        if catalog.history.exceeds(state.uri, retain + slack):
            cleanings.append(Cleaning(state.uri, retain))
    return tuple(cleanings)


def commits_to_retain(unread: int, uncompacted: int = 0) -> int:
    """Number of data commits to keep if the slowest consumer has so many to read: those, and the one at its frontier.

    Commits since the last compaction of a merge-on-read table are kept too: readers need their change logs.

    >>> commits_to_retain(0), commits_to_retain(30), commits_to_retain(1000), commits_to_retain(0, 15)
    (10, 31, 1001, 16)
    """
    return max(AT_LEAST, unread + 1, uncompacted + 1)


def _oldest_frontiers(readers: Iterable[TableState]) -> dict[str, list[str]]:
    """For each table, the frontiers that the models that read it have recorded."""
    frontiers: dict[str, list[str]] = {}
    for record in (state.record for state in readers):
        for input_id, frontier in (record.frontier if record else {}).items():
            frontiers.setdefault(input_id, []).append(frontier)
    return frontiers
