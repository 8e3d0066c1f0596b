"""Tables as a release names them. Owns the error where one is gone; `hudi.time_travel` finds a table's past."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.hudi.history import LakeHistory, table_state
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.releases.release import Release

LATEST = "latest-commit"
"""What stands for reading each table at its newest commit instead of at a release."""
_HINT = f"choose another release (`sml release list`), read each table's newest commit (--at {LATEST}), or `sml build`"


class GoneError(UsageError):
    """A table cannot be read as a release names it."""


class ReleasedHistory(LakeHistory):
    """Shows the tables of `places` at a release, with the records of its commits, and all others as they are."""

    def __init__(self, release: Release, places: Iterable[TablePlace]) -> None:
        super().__init__()
        self._release = release
        self._places: Mapping[str, TablePlace] = {place.uri: place for place in places}
        self._found: dict[str, TableState] = {}

    @contextmanager
    def keep(self, uris: Iterable[str]) -> Iterator[None]:  # noqa: ARG002 (a release does not move)
        yield

    def state(self, uri: str, format: str = "hudi") -> TableState:
        """Raises GoneError where the release does not name the table, or its files are gone."""
        if uri not in self._places:
            return super().state(uri, format)
        if uri not in self._found:
            self._found[uri] = self._at_release(self._places[uri])
        return self._found[uri]

    def _at_release(self, place: TablePlace) -> TableState:
        entry, number = self._release.tables.get(place.unique_id), self._release.id
        if entry is None or entry.table != str(place.table):
            why = "it was built later, or under another name"
            raise GoneError(f"release {number} has no table {place.table}: {why}", hint=_HINT)
        state = super().state(place.uri, place.format)
        if state.frontier == entry.commit:
            return state
        if not state.exists:
            raise GoneError(f"release {number} names {place.table}, which no longer exists", hint=_HINT)
        if state.kind == "files":
            raise GoneError(f"the files of {place.table} have changed since release {number}", hint=_HINT)
        try:
            timeline = Timeline(place.uri)
            then = state_at(state, entry.commit, timeline)
            until = Timeline(place.uri, timeline.snapshot_instant(entry.commit), timeline.names)
            return replace(then, record=table_state(until).record)
        except (NodeError, UsageError) as error:
            message = f"release {number} can no longer be read: {place.table} as of {entry.commit}: {error.message}"
            raise GoneError(message, hint=_HINT) from error
