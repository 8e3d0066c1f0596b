"""The engine of a Spark target: this process does what it is proven to do like Spark, Spark all else.

Spark's engine is made when it is first needed: a call that needs no Spark never imports pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Protocol

from sqlmesh_like.names import Schema, TableName
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.run.ports import (
    Export,
    LakeEngine,
    NamedColumns,
    Rebucketed,
    RowDifference,
    Rows,
    Sample,
    WriteResult,
    starting,
)
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteReader, RemoteRows
from sqlmesh_like.run.seeds import SeedTable

if TYPE_CHECKING:
    from sqlglot import exp

    from sqlmesh_like.duckdb.programs.local_actions import LocalActions
    from sqlmesh_like.duckdb.programs.local_models import LocalModels

Tables = Mapping[TableName, TableState]


class SparkHelp(LakeEngine, RemoteReader, Protocol):
    """An engine that also helps this process: it reads large tables, and commits what was computed here."""

    def commit(self, planned: PlannedModel, local: LocalActions, started: datetime) -> WriteResult:
        """Commit the actions of a model's run, on which work began at `started`."""
        ...


class LocalFirstEngine:
    """A `LakeEngine` that computes, reads and commits in this process where `router` says that it may."""

    def __init__(self, make: Callable[[], SparkHelp], router: Router, history: History) -> None:
        self._make = make
        self._router = router
        self._history = history
        self._lock = Lock()
        self._spark: SparkHelp | None = None
        self._models: LocalModels | None = None

    @property
    def _engine(self) -> SparkHelp:
        with starting(), self._lock:  # creating it imports its modules
            self._spark = self._spark or self._make()
        return self._spark

    @property
    def _local(self) -> LocalModels:
        from sqlmesh_like.duckdb.programs.local_models import LocalModels
        from sqlmesh_like.duckdb.programs.shared_rows import SharedRows

        with self._lock:
            self._models = self._models or LocalModels(SharedRows(), self._history, self._router, self, self.register)
        return self._models

    def apply(self, planned: PlannedModel, shared: NamedColumns | None = None) -> WriteResult:
        started = datetime.now(UTC)
        done = self._local.write(planned, shared or {})
        if isinstance(done, WriteResult):
            return done
        return self._engine.apply(planned, shared) if done is None else self._engine.commit(planned, done, started)

    def look_up(self, wanted: KeyedRows) -> RemoteRows:
        return self._engine.look_up(wanted)

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        return self._engine.run_query(wanted)

    def write_snapshot(self, planned: PlannedModel) -> WriteResult:
        done = self._local.write_snapshot(planned)
        return self._engine.write_snapshot(planned) if done is None else done

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:
        if not self._router.why_spark_creates(state.uri):
            from sqlmesh_like.hudi.local_seed import load_here

            if load_here(table, state, now, self._router.target.hudi):
                return
        self._engine.load(table, state, now)

    def query(self, tree: exp.Expr, tables: Tables, limit: int, shown: Schema | None = None) -> Rows:
        if shown is not None and not self._router.why_spark_reads(*(state.uri for state in tables.values())):
            from sqlmesh_like.duckdb.local_query import local_rows

            if (rows := local_rows(tree, tables, shown, limit, datetime.now(UTC))) is not None:
                return rows
        return self._engine.query(tree, tables, limit)

    def store_failures(self, tree: exp.Expr, tables: Tables, place: TablePlace, now: datetime) -> bool:
        return self._engine.store_failures(tree, tables, place, now)

    def execute(self, statement: str, tables: Tables) -> None:
        self._engine.execute(statement, tables)

    def verify(self, planned: PlannedModel, limit: int, sample: Sample | None = None) -> RowDifference:
        if sample is not None and not self._router.why_spark_reads(planned.target.uri):
            from sqlmesh_like.duckdb.local_sample import local_difference

            if (difference := local_difference(planned.as_recorded(), limit, sample)) is not None:
                return difference
        return self._engine.verify(planned, limit, sample)

    def changes(self, state: TableState, since: str, limit: int) -> Rows:
        if not self._router.why_spark_reads(state.uri):
            from sqlmesh_like.duckdb.local_changes import local_changes

            if (rows := local_changes(state, since, limit)) is not None:
                return rows
        return self._engine.changes(state, since, limit)

    @contextmanager
    def export(self, state: TableState, since: str | None, staging: str) -> Iterator[Export]:
        with ExitStack() as held:
            export = held.enter_context(self._export_here(state, since))
            if export is None:
                export = held.enter_context(self._engine.export(state, since, staging))
            yield export

    def _export_here(self, state: TableState, since: str | None) -> AbstractContextManager[Export | None]:
        if self._router.why_spark_reads(state.uri):
            return nullcontext()
        from sqlmesh_like.duckdb.local_changes import local_export

        return local_export(state, since)

    def compact(self, uri: str) -> int:
        return self._engine.compact(uri)

    def delete_rows(
        self, uri: str, columns: Sequence[str], values: Collection[Sequence[str]], options: Mapping[str, str]
    ) -> int:
        return self._engine.delete_rows(uri, columns, values, options)

    def rebucket(self, uri: str, options: Mapping[str, str]) -> Rebucketed | None:
        return self._engine.rebucket(uri, options)

    def clean(self, uri: str, retain: int) -> None:
        if not self._router.why_spark_cleans(uri):
            from sqlmesh_like.hudi.services.local_clean import clean_here

            if clean_here(uri, retain):
                return
        self._engine.clean(uri, retain)

    def register(self, table: TableName, uri: str, partition_field: str | None) -> None:
        self._engine.register(table, uri, partition_field)

    def release(self) -> None:
        if self._models is not None:
            self._models.release()
        if self._spark is not None:
            self._spark.release()

    def stop(self) -> None:
        if self._models is not None:
            self._models.release()
        if self._spark is not None:
            self._spark.stop()
