"""The timelines that this process has listed last. Owns when one of them does for a question, instead of a new listing.

On a store each listing is a request, and a plan asks ten times for each table. Rows as of a frontier never change: a
timeline that has the frontier knows all of them. On this machine a listing costs nothing, and is always new.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from threading import Lock

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import is_store


class _Listed:
    """By URI of the table."""

    def __init__(self) -> None:
        self._timelines: dict[str, Timeline] = {}
        self._lock = Lock()

    def get(self, uri: str) -> Timeline | None:
        with self._lock:
            return self._timelines.get(uri)

    def add(self, timeline: Timeline) -> Timeline:
        """Note a listing; where it is the one before, that one, with what was read of it, is returned."""
        with self._lock:
            known = self._timelines.get(timeline.uri)
            if known is None or known.names != timeline.names:
                self._timelines[timeline.uri] = known = timeline
            return known

    def forget(self, uris: Iterable[str]) -> None:
        with self._lock:
            for uri in uris:
                self._timelines.pop(uri.rstrip("/"), None)


@cache
def _known_timelines() -> _Listed:
    return _Listed()


def listed_timeline(uri: str) -> Timeline:
    """The timeline of a table as it is now."""
    timeline = Timeline(uri)
    return _known_timelines().add(timeline) if is_store(uri) else timeline


def forget_timelines(uris: Iterable[str]) -> None:
    """Ask for everything about these tables anew."""
    _known_timelines().forget(uris)


def timeline_at(uri: str, *frontiers: str) -> Timeline:
    """A timeline for questions about these frontiers of a table; none: about the table as it was listed last."""
    known = _known_timelines().get(uri.rstrip("/")) if is_store(uri) else None
    return known if known is not None and all(map(known.holds, frontiers)) else listed_timeline(uri)
