"""What is needed from an engine, one protocol for each use. Owns them and the outcome of one model.

DuckDB is an `Engine`, Spark over Hudi a `LakeEngine`; callers name the smallest protocol that suffices. The time that
an engine takes to start, such as Java's, is not counted for any node: it starts within `starting`, and the executor's
stopwatch leaves `waited_seconds` out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.render.rendered import RenderedModel

if TYPE_CHECKING:  # a call that plans nothing loads no SQL parser
    from sqlglot import exp

    from sqlmesh_like.classify.rules import Reason
    from sqlmesh_like.classify.strategy import Strategy
    from sqlmesh_like.plan.model_plan import PlannedModel
    from sqlmesh_like.run.seeds import SeedTable

Row = Mapping[str, object]
NamedColumns = Mapping[str, frozenset[str] | None]
"""By unique id of an input, the columns that models name, in lower case; None if it is not known which."""


@dataclass(frozen=True)
class SparkWork:
    """What Spark did for one node: jobs and stages that ran, bytes that scans read and that stages shuffled."""

    jobs: int
    stages: int
    bytes_read: int
    bytes_shuffled: int

    def __add__(self, other: SparkWork) -> SparkWork:
        return SparkWork(
            self.jobs + other.jobs, self.stages + other.stages, self.bytes_read + other.bytes_read,
            self.bytes_shuffled + other.bytes_shuffled,
        )  # fmt: skip


@dataclass(frozen=True)
class WriteResult:
    """What one run did to a model's table. Counts are rows of the target; `committed` False: nothing had changed.

    `warning` says what a user of these rows must know, `engine` what computed them: DuckDB where it can, see
    `duckdb.programs`. `spark` None: Spark had nothing to do, or what it did is not known.
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

    def with_next(self, later: WriteResult) -> WriteResult:
        """This result with that of the run that followed it: the counts of both, told as this strategy's."""
        return replace(
            self, upserts=self.upserts + later.upserts, deletes=self.deletes + later.deletes,
            committed=self.committed or later.committed, reasons=(*self.reasons, *later.reasons),
            warning=self.warning or later.warning, engine=later.engine, spark=later.spark or self.spark,
        )  # fmt: skip


@dataclass(frozen=True)
class LargestHash:
    """Up to which hash an engine compared keys; `hash` None: all keys. Engines hash differently."""

    engine: str
    hash: int | None

    def of(self, engine: str) -> int | None:
        """The hash up to which this engine has to compare keys, so that none of them is left out; None: all keys."""
        return self.hash if engine == self.engine else None


@dataclass(frozen=True)
class Sample:
    """How many keys of a table are compared, and the seed that determines which.

    `up_to` is that of an earlier comparison, whose keys are compared again, whatever other keys the table has now.
    """

    keys: int
    seed: int
    up_to: LargestHash | None = None


@dataclass(frozen=True)
class ComparedKeys:
    """The keys of a sample: their columns, and how many of them the table has. `is_all`: it has no others.

    Without columns the whole table was compared.
    """

    columns: tuple[str, ...]
    count: int
    is_all: bool
    up_to: LargestHash | None = None


@dataclass(frozen=True)
class RowDifference:
    """Rows by which a table differs from its recompute: `sign` -1 is only in the table, +1 only in the recompute.

    `keys` None: all rows were compared, not a sample.
    """

    total: int
    rows: tuple[tuple[int, Row], ...]
    keys: ComparedKeys | None = None


@dataclass(frozen=True)
class Rows:
    """Rows in the columns' order. `warning` says what a user of these rows must know."""

    schema: Schema
    rows: tuple[tuple[object, ...], ...]
    warning: str = ""


@dataclass(frozen=True)
class Export:
    """Rows of a table to be published, as Arrow record batches of a few thousand rows.

    Grain: one row per key, `_sml_key`; if `_sml_deleted` is true, the row was deleted and the other columns hold its
    last values. `whole`: all rows of the table; otherwise those that changed. `batches` may be called more than once
    while the export is open.
    """

    whole: bool
    schema: Any  # pyarrow.Schema
    batches: Callable[[], Iterator[Any]]


@dataclass(frozen=True)
class PublishResult:
    """The result of publishing one table to one destination; `rows` None: it was up to date."""

    destination: str
    table: str
    rows: int | None
    whole: bool = False


class Publisher(Protocol):
    """Publishes tables of models to the destinations that their config names."""

    def publish(self, model: RenderedModel) -> tuple[PublishResult, ...]:
        """Bring the model's destinations up to date with its table, which is not touched. Raises NodeError."""
        ...


@dataclass(frozen=True)
class Rebucketed:
    """Buckets per partition and files of the table, each before and after."""

    buckets: tuple[int, int]
    files: tuple[int, int]


class ModelWriter(Protocol):
    """Brings tables of models and seeds up to date, each in one commit."""

    def apply(self, planned: PlannedModel, shared: NamedColumns | None = None) -> WriteResult:
        """Bring the model's table from its recorded frontier to the pinned one, in one commit.

        `shared` are inputs that several models of the run read, with all columns that these models name, so that the
        same rows are read only once.
        """
        ...

    def write_snapshot(self, planned: PlannedModel) -> WriteResult:
        """Write the new versions of a snapshot's rows and end those that they replace, in one commit."""
        ...

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:
        """Replace a seed's table, whose state is given, with its rows in one commit that records the fingerprint."""
        ...

    def release(self) -> None:
        """Release what was cached for the models of a run."""
        ...


class QueryEngine(Protocol):
    """Runs queries over tables."""

    def query(
        self, tree: exp.Expr, tables: Mapping[TableName, TableState], limit: int, shown: Schema | None = None
    ) -> Rows:
        """Rows of any SELECT over whole tables as they were when their state was read; `limit` -1: all.

        `shown`: its columns as far as they are known, with Spark's types. If it is given, another engine may run the
        query, provided that it is proven to return Spark's values.
        """
        ...


class FailureStore(Protocol):
    """Stores the failing rows of a data test."""

    def store_failures(
        self, tree: exp.Expr, tables: Mapping[TableName, TableState], place: TablePlace, now: datetime
    ) -> bool:
        """Replace a table with the rows of a SELECT, and return whether it exists now: without rows none is created."""
        ...


class StatementEngine(Protocol):
    """Runs the statements of hooks and operations."""

    def execute(self, statement: str, tables: Mapping[TableName, TableState]) -> None:
        """Run one statement of any kind, in which these tables may be named; no rows are returned."""
        ...


class ModelVerifier(Protocol):
    """Compares tables with a recompute."""

    def verify(self, planned: PlannedModel, limit: int, sample: Sample | None = None) -> RowDifference:
        """Compare the table with its query, recomputed at the table's own frontier and clock.

        `sample`: only rows of these keys are compared, whichever of the two sides has them.
        """
        ...


class ChangeReader(Protocol):
    """Reads what changed in a table, for users."""

    def changes(self, state: TableState, since: str, limit: int) -> Rows:
        """What changed in a table between a frontier and that of its state; `limit` -1: all.

        Grain: a row for each inserted or deleted row, two for each updated one. The first column, `_change`, says
        `insert`, `delete`, `update_before` or `update_after`; rows that were rewritten unchanged are left out.
        """
        ...


class ChangeExporter(Protocol):
    """Reads what changed in a table, for publishing."""

    def export(self, state: TableState, since: str | None, staging: str) -> AbstractContextManager[Export]:
        """What changed in a derived table between a frontier and that of its state (`since` None: all its rows).

        Spark writes the rows as files into a new folder in `staging`, from where they are read in batches: the driver
        never holds them all. The folder is removed when the context ends.
        """
        ...


class TableMaintenance(Protocol):
    """Table services."""

    def compact(self, uri: str) -> int:
        """Merge the log files of a merge-on-read table into base files; return how many file groups had log files."""
        ...

    def delete_rows(
        self, uri: str, columns: Sequence[str], values: Collection[Sequence[str]], options: Mapping[str, str]
    ) -> int:
        """Delete the rows whose columns have one of these combinations of values, in one commit without a change log.

        Returns their number. `values` are texts of values; `options`: Hudi options of the user.
        """
        ...

    def rebucket(self, uri: str, options: Mapping[str, str]) -> Rebucketed | None:
        """Rewrite a table, every row unchanged, with the number of buckets that suits its size, in one commit.

        `options`: Hudi options of the user. None if it has that number already, or was not written by a run.
        """
        ...

    def clean(self, uri: str, retain: int) -> None:
        """Remove the history of a table except its newest `retain` data commits."""
        ...

    def register(self, table: TableName, uri: str, partition_field: str | None) -> None:
        """Tell the target's catalog of a table's columns and partitions, if it has one. Raises NodeError."""
        ...


class Engine(ModelWriter, QueryEngine, FailureStore, Protocol):
    """What a run needs from an engine. A method that raises NodeError or RetryableError has changed nothing."""

    def stop(self) -> None: ...


class LakeEngine(Engine, StatementEngine, ModelVerifier, ChangeReader, ChangeExporter, TableMaintenance, Protocol):
    """An engine whose tables outlive the process and have a history."""


class _Waited(local):
    seconds = 0.0
    depth = 0


_waited = _Waited()


@contextmanager
def starting() -> Iterator[None]:
    """Count the time in this context for no node: an engine starts, or this thread waits for one that starts it."""
    began = perf_counter()
    _waited.depth += 1
    try:
        yield
    finally:
        _waited.depth -= 1
        if not _waited.depth:
            _waited.seconds += perf_counter() - began


def waited_seconds() -> float:
    """Total seconds that this thread has waited for an engine to start.

    >>> import time
    >>> before = waited_seconds()
    >>> with starting(), starting():
    ...     time.sleep(0.01)
    >>> waited_seconds() - before >= 0.01
    True
    """
    return _waited.seconds
