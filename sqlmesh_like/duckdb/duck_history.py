"""Tables that exist only in this process. Owns their states, as planning needs them; they have no history."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from sqlmesh_like.names import Schema
from sqlmesh_like.plan.history import NO_CHANGE, ChangeVolume, CommitSummary, TableState, Volume

_ONLY = "1"
"""The frontier of every existing table, as each is written once."""


class DuckHistory:
    """The `History` port over tables in memory, by uri."""

    def __init__(self) -> None:
        self._states: dict[str, TableState] = {}

    def add(self, uri: str, schema: Schema) -> None:
        """Record that a table exists."""
        self._states[uri] = TableState(uri, "files", _ONLY, schema=schema, stored=schema, format="duckdb")

    def state(self, uri: str, format: str = "hudi") -> TableState:  # noqa: ARG002
        return self._states.get(uri) or TableState(uri, "missing")

    def keep(self, uris: Iterable[str]) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def renew(self, uri: str | None = None) -> None:
        pass

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:  # noqa: ARG002
        return None

    def missing(self, uri: str) -> str | None:  # noqa: ARG002
        return None

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:  # noqa: ARG002
        return NO_CHANGE

    def volume(self, uri: str, frontier: str) -> Volume:  # noqa: ARG002
        return Volume()

    def repeats_keys(self, uri: str, frontier: str) -> bool:  # noqa: ARG002
        return False

    def last_write(self, uri: str) -> CommitSummary | None:  # noqa: ARG002
        return None

    def exceeds(self, uri: str, commits: int) -> bool:  # noqa: ARG002
        return False

    def uncompacted_commits(self, uri: str) -> int:  # noqa: ARG002
        return 0

    def unread_commits(self, uri: str, start: str, since: str) -> int:  # noqa: ARG002
        return 0

    def pending_commits(self, uri: str, start: str, end: str) -> int:  # noqa: ARG002
        return 0
