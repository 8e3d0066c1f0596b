"""Facts about the current state of a table for users: size, columns, commits. Owns the values; `hudi` reads them.

Nothing here decides anything: planning has `plan.history`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmesh_like.names import Schema
from sqlmesh_like.plan.history import TableState, Volume


@dataclass(frozen=True)
class CommitFacts:
    """One commit. `time` is its completion in UTC (ISO 8601), `seconds` how long writing took.

    `rows` are all rows in the files that it wrote, including those carried over; `frontier` is that of its inputs;
    `savepoint`: the comment of its savepoint, or who created it, None where it has none.
    """

    time: str
    instant: str
    seconds: float
    kind: str
    strategy: str | None
    inserts: int
    updates: int
    deletes: int
    rows: int
    files: int
    bytes: int
    frontier: Mapping[str, str] | None
    columns: tuple[str, ...] = ()
    savepoint: str | None = None


@dataclass(frozen=True)
class TableFacts:
    """One table of the lake. `problem` says why nothing else is known; `commits` are its newest ones, oldest first.

    `partition_columns` are those whose values form the paths of its partitions.
    """

    unique_id: str
    state: TableState
    volume: Volume = field(default_factory=Volume)
    partition_columns: tuple[str, ...] = ()
    commits: tuple[CommitFacts, ...] = ()
    problem: str | None = None

    @property
    def columns(self) -> Schema:
        return self.state.schema or ()
