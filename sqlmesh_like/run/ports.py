"""What is needed from an engine, one protocol for each use. Owns them and the outcome of one model.

DuckDB is an `Engine`, Spark over Hudi a `LakeEngine`; callers name the smallest protocol that suffices. What an
engine takes to start, such as Java's, counts for no node: it starts within `starting`, and the executor's stopwatch
leaves `waited_seconds` out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import local
from time import perf_counter
from typing import Any, Literal, Protocol

from sqlglot import exp

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.seeds import SeedTable

Row = Mapping[str, object]
NamedColumns = Mapping[str, frozenset[str] | None]
"""By unique id of an input the columns, in lower case, that models name of it; None where it is not known which."""


@dataclass(frozen=True)
class SparkWork:
    """What Spark did for one node: jobs and stages that ran, bytes that scans read and that stages wrote for others."""

    jobs: int
    stages: int
    bytes_read: int
    bytes_shuffled: int


@dataclass(frozen=True)
class WriteResult:
    """What one run did to a model's table. Counts are rows of the target; `committed` False: nothing had changed.

    `warning` says what a reader must know of these rows, `engine` what computed them: DuckDB where it can, see
    `duckdb.local_program`. `spark` None: Spark had nothing to do, or what it did is not known.
    """

    strategy: Strategy
    upserts: int
    deletes: int
    committed: bool
    reasons: tuple[Reason, ...] = ()
    warning: str = ""
    engine: Literal["spark", "duckdb"] = "spark"
    spark: SparkWork | None = None

    @property
    def rows(self) -> int:
        return self.upserts + self.deletes


@dataclass(frozen=True)
class RowDifference:
    """Rows by which a table differs from its recompute: `sign` -1 is only in the table, +1 only in the recompute."""

    total: int
    rows: tuple[tuple[int, Row], ...]


@dataclass(frozen=True)
class Rows:
    """Rows in the columns' order. `warning` says what a reader must know of them, as that of `WriteResult` does."""

    schema: Schema
    rows: tuple[tuple[object, ...], ...]
    warning: str = ""


@dataclass(frozen=True)
class Export:
    """Rows of a table on their way out of the lake, as Arrow record batches of a few thousand rows.

    Grain: one row a key, `_sml_key`; where `_sml_deleted` the row is gone and the other columns are as it was. `whole`:
    all rows there are; else those that changed. `batches` may be called more than once, while the export is open.
    """

    whole: bool
    schema: Any  # pyarrow.Schema
    batches: Callable[[], Iterator[Any]]


@dataclass(frozen=True)
class PublishResult:
    """What one publication did; `rows` None: it was up to date."""

    destination: str
    table: str
    rows: int | None
    whole: bool = False


class Publisher(Protocol):
    """Sends tables of models to where people look."""

    def publish(self, model: RenderedModel) -> tuple[PublishResult, ...]:
        """Bring what the model's config names up to its table. Raises NodeError; the table itself is not touched."""
        ...


@dataclass(frozen=True)
class Rebucketed:
    """Buckets in each partition and files in all, before and after."""

    buckets: tuple[int, int]
    files: tuple[int, int]


class ModelWriter(Protocol):
    """Brings tables of models and seeds up to date, each in one commit."""

    def apply(self, planned: PlannedModel, shared: NamedColumns | None = None) -> WriteResult:
        """Bring the model's table from its recorded frontier to the pinned one, in one commit.

        `shared` are inputs that several models of the run read, with the columns that any of these names: what they
        read alike is read once.
        """
        ...

    def write_snapshot(self, planned: PlannedModel) -> WriteResult:
        """Write the new versions of a snapshot's rows, and the ends of those that they replace, in one commit."""
        ...

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:
        """Replace a seed's table, whose state is given, by its rows in one commit that records the fingerprint."""
        ...

    def release(self) -> None:
        """Forget what was read for the models of a run."""
        ...


class QueryEngine(Protocol):
    """Answers questions over tables."""

    def query(
        self, tree: exp.Expr, tables: Mapping[TableName, TableState], limit: int, shown: Schema | None = None
    ) -> Rows:
        """Rows of any SELECT over whole tables as they were when their state was read; `limit` -1: all.

        `shown`: its columns, as far as they are known with the types that Spark gives them. Where it is given, another
        engine may answer that is proven to give Spark's values.
        """
        ...


class FailureStore(Protocol):
    """Keeps the rows that a data test found."""

    def store_failures(
        self, tree: exp.Expr, tables: Mapping[TableName, TableState], place: TablePlace, now: datetime
    ) -> bool:
        """Make a table equal to the rows of any SELECT; whether there is one now. Of no rows none is made."""
        ...


class StatementEngine(Protocol):
    """Runs the statements of hooks and operations."""

    def execute(self, statement: str, tables: Mapping[TableName, TableState]) -> None:
        """Run one statement of any kind, in which these tables may be named; no rows are returned."""
        ...


class ModelVerifier(Protocol):
    """Compares tables with a full recompute."""

    def verify(self, planned: PlannedModel, limit: int) -> RowDifference:
        """Compare the table with its query, recomputed at the table's own frontier and clock."""
        ...


class ChangeReader(Protocol):
    """Reads what changed in a table, for people."""

    def changes(self, state: TableState, since: str, limit: int) -> Rows:
        """What changed in a table between a frontier and that of its state; `limit` -1: all.

        Grain: a row for each inserted or deleted row, two for each updated one. The first column, `_change`, says
        `insert`, `delete`, `update_before` or `update_after`; rows written again as they were are none.
        """
        ...


class ChangeExporter(Protocol):
    """Reads what changed in a table, for publishing."""

    def export(self, state: TableState, since: str | None, staging: str) -> AbstractContextManager[Export]:
        """What changed in a derived table between a frontier and that of its state (`since` None: all its rows).

        Spark writes the rows as files into a new folder in `staging`, from where they are read in batches: the driver
        never holds them all. The folder goes with the context.
        """
        ...


class TableMaintenance(Protocol):
    """Table services."""

    def compact(self, uri: str) -> int:
        """Merge the log files of a merge-on-read table into base files; how many file groups had some."""
        ...

    def rebucket(self, uri: str, options: Mapping[str, str]) -> Rebucketed | None:
        """Write a table anew, every row as it is, with the number of buckets that its size asks for, in one commit.

        `options`: Hudi options of the user. None where it has that number, or is not ours.
        """
        ...

    def clean(self, uri: str, retain: int) -> None:
        """Remove history of a table but its newest `retain` data commits."""
        ...


class Engine(ModelWriter, QueryEngine, FailureStore, Protocol):
    """What a run needs of an engine. Every method may raise NodeError or RetryableError, having changed nothing."""

    def stop(self) -> None: ...


class LakeEngine(Engine, StatementEngine, ModelVerifier, ChangeReader, ChangeExporter, TableMaintenance, Protocol):
    """An engine whose tables outlive the process and have a past."""


class _Waited(local):
    seconds = 0.0
    depth = 0


_waited = _Waited()


@contextmanager
def starting() -> Iterator[None]:
    """What goes on in the context counts for no node: an engine starts, or a thread that starts it is waited for."""
    began = perf_counter()
    _waited.depth += 1
    try:
        yield
    finally:
        _waited.depth -= 1
        if not _waited.depth:
            _waited.seconds += perf_counter() - began


def waited_seconds() -> float:
    """Seconds that this thread has ever waited for an engine to start.

    >>> import time
    >>> before = waited_seconds()
    >>> with starting(), starting():
    ...     time.sleep(0.01)
    >>> waited_seconds() - before >= 0.01
    True
    """
    return _waited.seconds
