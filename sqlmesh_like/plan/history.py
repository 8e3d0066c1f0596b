"""What the lake remembers, as planning sees it. Owns the record that every commit of a model carries, and the port.

There is no other state: a model's frontier, fingerprint and clock are in its own table's commit metadata, written
atomically with the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Literal, Protocol

from sqlmesh_like.errors import NewerVersionError, NodeError
from sqlmesh_like.names import Schema, TableName

RECORD_KEY = "record"
"""Key of a model's record in its commits' metadata."""

AS_WRITTEN = ":as-written"
"""Suffix of the fingerprint of a table whose rows are those of the query but lack the state that deltas need."""


@dataclass(frozen=True)
class TableRecord:
    """The record that a commit to a model's table carries about its run.

    `frontier` maps each input's unique id to the last instant consumed; `now` is the clock of the run (ISO 8601, UTC).
    """

    unique_id: str
    fingerprint: str
    frontier: Mapping[str, str]
    now: str
    strategy: str
    partition_by: tuple[str, ...] = ()
    buckets: int = 1
    rows: Mapping[str, int] = field(default_factory=dict)
    repeating: tuple[str, ...] = ()  # inputs whose record keys may repeat
    started: str = ""  # when the work that led to this commit began (ISO 8601, UTC)
    seconds_expected: float = 0.0  # how long that work should take; 0: not known
    paces: Mapping[str, float] = field(default_factory=dict)  # of the runs before, see `plan.cost`
    parts: Mapping[str, str] = field(default_factory=dict)  # digests of the query's parts, see `plan.queries`
    meaning: str = ""  # see `plan.fingerprint`
    outline: Mapping[str, str] = field(
        default_factory=dict
    )  # digests of what the query selects, see `plan.edits.outline`
    query: str = ""  # the query itself, compressed, see `plan.edits.recorded_query`
    frozen_before: str = ""  # rows whose first partition column is below it may be those of earlier inputs and queries
    slices_built: int = 0  # of a build that is not finished, see `plan.slices`
    slices_left: tuple[str, ...] = ()  # the first partition value of each slice that the table does not have yet

    def has_fingerprint(self, print_: str) -> bool:
        """Whether the rows are those of the query with this fingerprint."""
        return self.fingerprint.removesuffix(AS_WRITTEN) == print_

    def to_json(self) -> str:
        """The record as text; an older version can read it, unless partitions are frozen, or slices not built yet."""
        values = {name: value for name, value in asdict(self).items() if name not in _NEWER or value}
        return json.dumps(values, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> TableRecord:
        """The record of a commit. Raises ValueError or TypeError if the text is not one.

        Raises NewerVersionError where it is one with fields that this version does not know.
        """
        values = json.loads(text)
        if not isinstance(values, dict):
            raise TypeError(f"a record is an object, not {text!r}")
        for name in ("partition_by", "repeating", "slices_left"):
            values[name] = tuple(values.get(name, ()))
        if values.keys() >= _REQUIRED and (unknown := sorted(values.keys() - _FIELDS)):
            why = f"its record has {unknown[0]!r}, which this one does not know"
            raise NewerVersionError(f"the table of {values['unique_id']}", why)
        return TableRecord(**values)


_FIELDS = frozenset(one.name for one in fields(TableRecord))
_NEWER = frozenset(("frozen_before", "slices_built", "slices_left"))
"""Fields that older versions do not know."""
_REQUIRED = frozenset(("unique_id", "fingerprint", "frontier", "now", "strategy"))


@dataclass(frozen=True)
class StoredLayout:
    """The visible columns that a table's partition paths derive from; `encoded`: through hidden `_sml_partition`."""

    columns: tuple[str, ...]
    encoded: bool


@dataclass(frozen=True)
class TableState:
    """The current state of one table. `frontier` None: nothing was committed. `record` None: not written by a run.

    `unreadable`: the table exists, but its metadata is broken; only a full refresh may be planned for it.
    """

    uri: str
    kind: Literal["missing", "unreadable", "cow", "mor", "files"]
    frontier: str | None = None
    record: TableRecord | None = None
    schema: Schema | None = None  # visible columns
    stored: Schema | None = None  # all columns
    format: str = "hudi"
    layout: StoredLayout = StoredLayout((), False)
    is_foreign_on_top: bool = False  # a data commit after the last full refresh is not ours

    @property
    def exists(self) -> bool:
        return self.frontier is not None


def require_table(table: TableName, state: TableState) -> None:
    """Raise NodeError if a table that is to be read does not exist, before an engine is started."""
    if not state.exists:
        hint = "run `sml ingest` or build its model first"
        raise NodeError(f"the table {table} does not exist yet ({state.uri})", hint=hint)


def completed_at(frontier: str | None) -> datetime:
    """When the commit that a frontier names was completed. Raises ValueError where it names none."""
    _, _, completed = (frontier or "").partition("_")
    return datetime.strptime(completed, "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)


@dataclass(frozen=True)
class Volume:
    """How much a table holds as of a frontier. `rows`: an estimate where older commits are archived."""

    bytes: int = 0
    rows: int = 0
    files: int = 0
    partitions: int = 0


@dataclass(frozen=True)
class ChangeVolume:
    """How much commits between two frontiers changed. `rows`: written, deleted or replaced rows, an upper bound.

    `files` counts the file groups that were touched, `bytes` is their current size, `partitions` the number of their
    partitions. `logged` is the size of the change logs that hold the rows; None if files are compared instead, and
    `compared` says why.
    """

    rows: int = 0
    files: int = 0
    bytes: int = 0
    partitions: int = 0
    logged: int | None = None
    compared: str | None = None

    @property
    def read(self) -> int:
        """Bytes that are read to get the changed rows: without logs, file groups are read before and after."""
        return 2 * self.bytes if self.logged is None else self.logged


NO_CHANGE = ChangeVolume()


@dataclass(frozen=True)
class CommitSummary:
    """What one commit wrote: files, their bytes and all rows in them, including those that it only carried over.

    `changed`: rows that it inserted, updated or deleted.
    """

    instant: str
    rows: int
    files: int
    bytes: int
    changed: int = 0


class History(Protocol):
    """Reads tables without a JVM. `state` reads only the top of a timeline; the others as far back as requested."""

    def state(self, uri: str, format: str = "hudi") -> TableState:
        """The current state of a table; `missing` if there is none."""
        ...

    def keep(self, uris: Iterable[str]) -> AbstractContextManager[None]:
        """List tables on a store side by side: while the context is open, `state` knows them as they are now.

        One that is renewed meanwhile is known again from `last_write` on, which lists it. Within another context only
        tables that this one does not know are listed.
        """
        ...

    def renew(self, uri: str | None = None) -> None:
        """Read a table (None: all) anew from now on, because it was, or may have been, written."""
        ...

    def unreadable_reason(self, uri: str, start: str, end: str) -> str | None:
        """Why the change between two frontiers can no longer be read; None if it can."""
        ...

    def missing(self, uri: str) -> str | None:
        """Which of a table's current data files are missing, as a message; None if all of them exist."""
        ...

    def change(self, uri: str, start: str, end: str) -> ChangeVolume:
        """How much commits between two frontiers changed."""
        ...

    def volume(self, uri: str, frontier: str) -> Volume:
        """Size of a table as of a frontier."""
        ...

    def repeats_keys(self, uri: str, frontier: str) -> bool:
        """Whether rows may share a record key; if so, the write that wrote a row last also identifies it."""
        ...

    def last_write(self, uri: str) -> CommitSummary | None:
        """What the newest data commit wrote; None if there is none."""
        ...

    def exceeds(self, uri: str, commits: int) -> bool:
        """Whether the active timeline has more data commits than this."""
        ...

    def uncompacted_commits(self, uri: str) -> int:
        """Number of data commits since the last compaction of a merge-on-read table; 0 for another table."""

    def unread_commits(self, uri: str, start: str, since: str) -> int:
        """Number of commits, including table services, that a consumer at the frontier `start` has not read.

        0 where the first of them completed before the instant `since`: such a consumer is rebuilt in full.
        """
        ...

    def pending_commits(self, uri: str, start: str, end: str) -> int:
        """Number of commits between two frontiers, including table services: a cleaner counts these too."""
        ...
