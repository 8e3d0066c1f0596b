"""The port by which a program that runs in this process reads tables that are too large for it. Owns its questions.

They are answered where the tables are, in one query each: rows that have certain keys, or the rows of a whole step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like.names import Schema
from sqlmesh_like.run.ports import SparkWork

if TYPE_CHECKING:  # a call that plans nothing loads no SQL parser, one that computes nothing no Arrow
    import pyarrow as pa
    from sqlglot import exp

    from sqlmesh_like.delta.program import Prune
    from sqlmesh_like.plan.model_plan import PlannedModel


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a table as of a frontier in which some columns have the values of a row of `keys`, NULL as a value.

    `keys`: distinct rows, its columns named as the table's; `columns`: those that are wanted, with Spark's types;
    `most`: the number of rows above which none are.
    """

    uri: str
    frontier: str
    keys: pa.Table
    columns: Schema
    most: int


@dataclass(frozen=True)
class RemoteQuery:
    """A query of a model's program in Spark's SQL, over outside relations (see `delta.program`) and earlier `steps`.

    Its clocks are set, and it must not be modified. `steps` have all rows of each step, in types that are Spark's,
    timestamps in UTC. `prunes`: see `delta.program.ProgramStep`. Above `most_rows`, or where the rows might have more
    than `most_bytes`, none are wanted.
    """

    planned: PlannedModel
    query: exp.Query
    prunes: tuple[Prune, ...]
    steps: Mapping[str, pa.Table]
    most_rows: int
    most_bytes: int


@dataclass(frozen=True)
class RemoteRows:
    """The rows that were wanted, in which timestamps are UTC; None: they are too many, or cannot be read.

    `columns`: theirs, with Spark's types. `spark`: what it did for them, None: that is not known.
    """

    rows: pa.Table | None
    columns: Schema = ()
    spark: SparkWork | None = None


class RemoteReader(Protocol):
    """Reads large tables where they are."""

    def look_up(self, wanted: KeyedRows) -> RemoteRows: ...

    def run_query(self, wanted: RemoteQuery) -> RemoteRows: ...
