"""The `LakeEngine` port on Spark and Hudi. Owns the calls to Spark; `delta.machine` owns what a strategy runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from sqlmesh_like.delta.machine import Machine, MaintainedTable
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.programs.local_actions import LocalActions
from sqlmesh_like.errors import MachineError, NodeError
from sqlmesh_like.hudi.change_log import remove_logs
from sqlmesh_like.hudi.recovery.table_swap import recover
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, PARTITION, Schema, TableName
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.frontier_advance import must_advance_frontier
from sqlmesh_like.plan.history import History, TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.router import Router
from sqlmesh_like.plan.sample_columns import inexact_columns, sample_columns
from sqlmesh_like.project.functions.declarations import FunctionFile
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.run.close_rows import relative_tolerance
from sqlmesh_like.run.ports import (
    Export,
    NamedColumns,
    Rebucketed,
    RowDifference,
    Rows,
    Sample,
    WriteResult,
    starting,
)
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteRows
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.spark.change_feed.change_feed import change_feed, label_changes
from sqlmesh_like.spark.change_feed.keyed_rows import keyed_rows
from sqlmesh_like.spark.change_feed.shared_changes import SharedChanges
from sqlmesh_like.spark.export import export_rows
from sqlmesh_like.spark.frames.comparison import difference, sampled_difference
from sqlmesh_like.spark.frames.content_key import keyed_by_content
from sqlmesh_like.spark.frames.python_rows import python_rows
from sqlmesh_like.spark.jvm.job_metrics import measure_work
from sqlmesh_like.spark.jvm.session import stop_session
from sqlmesh_like.spark.jvm.spark_errors import failing, failing_model, first_line, without_lost_jvm
from sqlmesh_like.spark.program.remote_query import query_rows
from sqlmesh_like.spark.program.scalar_functions import register_functions
from sqlmesh_like.spark.program.spark_steps import SparkSteps
from sqlmesh_like.spark.program.view_bindings import Bindings, bound
from sqlmesh_like.spark.tables.catalog_sync import register, sync
from sqlmesh_like.spark.tables.cleaner import clean_history
from sqlmesh_like.spark.tables.compaction import compact
from sqlmesh_like.spark.writer import upsert as sinks
from sqlmesh_like.spark.writer.rebucket import rebucket
from sqlmesh_like.spark.writer.row_deletes import delete_rows
from sqlmesh_like.spark.writer.seeds import load_seed
from sqlmesh_like.spark.writer.snapshots import take_snapshot
from sqlmesh_like.spark.writer.stored_failures import store_failing_rows
from sqlmesh_like.spark.writer.table_layout import TableLayout
from sqlmesh_like.spark.writer.table_writer import SparkWriter

_LOG = logging.getLogger(__name__)


class SparkEngine:
    """Starts Spark on first use: a run in which nothing changed never does."""

    def __init__(
        self,
        target: Target,
        history: History,
        start: Callable[[], SparkSession],
        *,
        stops_spark: bool = True,
        functions: Sequence[FunctionFile] = (),
    ) -> None:
        self._target = target
        self._history = history
        self._layout = TableLayout(Router(target), history)
        self._start = start
        self._stops_spark = stops_spark
        self._functions = functions
        self._lock = Lock()
        self._changes = SharedChanges()
        self._shared: SparkSession | None = None
        self._failure: MachineError | None = None

    def session(self) -> SparkSession:
        """A session with its own views and the project's functions in Python, on the one Spark of this process."""
        with starting(), self._lock:
            if self._failure is not None:  # of this run: a cluster that does not answer is waited for once
                raise self._failure
            if self._shared is None:
                try:
                    self._shared = self._start()
                except MachineError as error:
                    self._failure = error
                    raise
        session = self._shared.newSession()
        register_functions(session, self._functions)
        return session

    def release(self) -> None:
        self._failure = None
        with without_lost_jvm():
            self._changes.release()

    def stop(self) -> None:
        self.release()
        with self._lock:
            if self._shared is not None and self._stops_spark:
                stop_session(self._shared)
            self._shared = None

    def apply(self, planned: PlannedModel, shared: NamedColumns | None = None) -> WriteResult:
        bindings = Bindings(self._session_of(planned), planned, self._changes, shared or {})
        return self._apply(bindings, self._run_program)

    def commit(self, planned: PlannedModel, local: LocalActions, started: datetime) -> WriteResult:
        """Commit what DuckDB computed for a model, on which work began at `started`."""
        spent = datetime.now(UTC) - started
        session = self._session_of(planned)  # starting a JVM does not count as the model's work
        bindings = Bindings(session, planned, self._changes, started=datetime.now(UTC) - spent)
        return self._apply(bindings, lambda views: self._writer(SparkSteps(views)).write_local(local))

    def look_up(self, wanted: KeyedRows) -> RemoteRows:
        """Rows of a table by keys, for a program that runs without Spark; where there are none, it has to run on it."""
        try:
            session = self.session()
            with failing(f"{wanted.uri} cannot be read"), measure_work(session) as spark_work:
                return RemoteRows(keyed_rows(session, wanted), wanted.columns, spark_work())
        except NodeError as error:  # it may fail in the program as well, which then reports the reason
            _LOG.debug("rows of %s cannot be looked up: %s", wanted.uri, error)
            return RemoteRows(None)

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        """The same for the rows of a step."""
        bindings: Bindings | None = None
        try:
            bindings = Bindings(self._session_of(wanted.planned), wanted.planned, self._changes)
            with failing_model(wanted.planned), measure_work(bindings.session) as spark_work:
                return replace(query_rows(bindings, wanted), spark=spark_work())
        except NodeError as error:
            _LOG.debug("a step of %s cannot be read: %s", wanted.planned.compiled.model.unique_id, error)
            return RemoteRows(None)
        finally:
            if bindings is not None:
                with without_lost_jvm():
                    bindings.release()

    def _run_program(self, bindings: Bindings) -> WriteResult:
        planned, steps = bindings.planned, SparkSteps(bindings)
        writer = self._writer(steps)
        at = (KEY, PARTITION) if writer.target.partition_by else (KEY,)
        table = MaintainedTable(writer.target.table.name, at, writer.target.unique_key)
        if planned.reconciles and not writer.is_comparable:
            return writer.rebuild()
        machine = Machine(
            planned.table, steps, writer, table, planned.now, planned.then, frozen=planned.frozen
        )  # fmt: skip
        return machine.run(planned.strategy, planned.moves)

    def _writer(self, steps: SparkSteps) -> SparkWriter:
        return SparkWriter(steps.bindings.planned, steps, self._history, self._layout.specify)

    def _take_snapshot(self, bindings: Bindings) -> WriteResult:
        planned = bindings.planned
        must_commit = must_advance_frontier(planned, self._history)
        return take_snapshot(planned, bindings, self._layout.specify(planned), must_commit)

    def _session_of(self, planned: PlannedModel) -> SparkSession:
        with failing_model(planned):
            return self.session()

    def _apply(self, bindings: Bindings, work: Callable[[Bindings], WriteResult]) -> WriteResult:
        planned = bindings.planned
        try:
            with failing_model(planned), measure_work(bindings.session) as spark_work:
                bindings.spark_work = spark_work
                applied = work(bindings)
                if applied.committed and not planned.is_beside:
                    self._register(bindings.session, planned)
                return replace(applied, spark=spark_work())
        finally:
            with without_lost_jvm():
                bindings.release()

    def _register(self, session: SparkSession, planned: PlannedModel) -> None:
        model = planned.compiled.model
        partition_field = PARTITION if model.config.partition_by else None
        sync(session, self._target, model.table, planned.target.uri, partition_field)

    def register(self, table: TableName, uri: str, partition_field: str | None) -> None:
        sync(self.session(), self._target, table, uri, partition_field)

    def write_snapshot(self, planned: PlannedModel) -> WriteResult:
        bindings = Bindings(self._session_of(planned), planned)
        return self._apply(bindings, self._take_snapshot)

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:
        with failing(table.seed.path):
            session = self.session()
            state = self._recover_state(state)
            load_seed(session, table, state, now, self._target.hudi)
            sync(session, self._target, table.seed.table, state.uri, None)

    def verify(self, planned: PlannedModel, limit: int, sample: Sample | None = None) -> RowDifference:
        recorded = planned.as_recorded()
        bindings = Bindings(self.session(), recorded)
        with failing_model(planned):
            expected = bindings.recomputed()
            # As planned, with the inputs: a run may have committed since.
            assert planned.target.frontier is not None
            feed = change_feed(bindings.session, Timeline(planned.target.uri))
            stored = feed.current(planned.target.frontier).drop(KEY)
            stored = stored.select(*[f"`{name}`" for name in expected.columns])
            if planned.frozen is not None:  # rows of frozen partitions may be other rows than the query's
                live = planned.frozen.is_live().sql(SPARK)
                stored, expected = stored.where(live), expected.where(live)
            shown = sinks.frame_schema(stored)
            inexact = inexact_columns(recorded.compiled, shown)
            tolerance = relative_tolerance(recorded.compiled.model.config.floating)
            if sample is None:
                return difference(stored, expected, limit, inexact, tolerance)
            names = sample_columns(recorded.compiled, shown)
            return sampled_difference(stored, expected, names, sample, limit, inexact, tolerance)

    def query(
        self,
        tree: exp.Expr,
        tables: Mapping[TableName, TableState],
        limit: int,
        shown: Schema | None = None,  # noqa: ARG002
    ) -> Rows:
        with failing("the query failed"):
            return _rows(bound(self.session(), tree, tables), limit)

    def changes(self, state: TableState, since: str, limit: int) -> Rows:
        assert state.frontier is not None
        with failing(f"the changes of {state.uri} cannot be read"):
            feed = change_feed(self.session(), Timeline(state.uri))
            return _rows(label_changes(feed.changes(since, state.frontier)), limit)

    @contextmanager
    def export(self, state: TableState, since: str | None, staging: str) -> Iterator[Export]:
        with failing(f"{state.uri} cannot be published"), export_rows(self.session(), state, since, staging) as export:
            yield export

    def compact(self, uri: str) -> int:
        with failing(f"compacting {uri} failed"):
            return compact(self.session(), uri)

    def delete_rows(
        self, uri: str, columns: Sequence[str], values: Collection[Sequence[str]], options: Mapping[str, str]
    ) -> int:
        with failing(f"deleting rows of {uri} failed"):
            return delete_rows(self.session(), uri, columns, values, options)

    def rebucket(self, uri: str, options: Mapping[str, str]) -> Rebucketed | None:
        with failing(f"rewriting {uri} failed"):
            return rebucket(self.session(), uri, options)

    def store_failures(
        self, tree: exp.Expr, tables: Mapping[TableName, TableState], place: TablePlace, now: datetime
    ) -> bool:
        with failing(f"the failures cannot be stored in {place.table}"):
            frame = bound(self.session(), tree, tables)
            state = self._recover_state(self._history.state(place.uri))
            return store_failing_rows(keyed_by_content(frame), place, state, now, self._target.hudi)

    def _recover_state(self, state: TableState) -> TableState:
        """The state of a table after a swap of it that a crash interrupted was finished or undone."""
        return self._history.state(state.uri) if recover(state.uri) else state

    def execute(self, statement: str, tables: Mapping[TableName, TableState]) -> None:
        session = self.session()
        try:
            register(session, tables)
            result = session.sql(statement)
            if result.columns:
                # Rows are computed but not collected: a hook's SELECT may return any number of them.
                result.toDF(*map(str, range(len(result.columns)))).write.format("noop").mode("overwrite").save()
        except (Py4JJavaError, PySparkException) as error:
            raise NodeError(first_line(error)) from error

    def clean(self, uri: str, retain: int) -> None:
        with failing(f"cleaning {uri} failed"):
            clean_history(self.session(), uri, retain)
            remove_logs(Timeline(uri))


def _rows(frame: DataFrame, limit: int) -> Rows:
    return Rows(sinks.frame_schema(frame), tuple(python_rows(frame if limit < 0 else frame.limit(limit))))
