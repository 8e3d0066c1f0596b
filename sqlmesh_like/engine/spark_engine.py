"""The `Engine` port on Spark and Hudi. Owns the order of work of each strategy; the parts are its neighbours."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Lock

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from sqlmesh_like.analyze.clock import frozen
from sqlmesh_like.classify.rules import TIED, Reason, reason
from sqlmesh_like.delta.partitions import AFFECTED, partition_columns
from sqlmesh_like.delta.program import DeltaProgram, RescanProgram
from sqlmesh_like.engine import sink as sinks
from sqlmesh_like.engine.bindings import Bindings, bound
from sqlmesh_like.engine.catalog_sync import sync
from sqlmesh_like.engine.cleaning import clean_history
from sqlmesh_like.engine.compacting import compact
from sqlmesh_like.engine.comparison import difference
from sqlmesh_like.engine.described import described
from sqlmesh_like.engine.export import exported
from sqlmesh_like.engine.feeds import feed_of
from sqlmesh_like.engine.handwritten import write_branch
from sqlmesh_like.engine.jars import Progress
from sqlmesh_like.engine.kept_rows import keep_rows
from sqlmesh_like.engine.keyed import keyed_by_content
from sqlmesh_like.engine.named_tables import register
from sqlmesh_like.engine.partition_paths import target_paths
from sqlmesh_like.engine.seeds import load_seed
from sqlmesh_like.engine.session import start_session
from sqlmesh_like.engine.shared_changes import SharedChanges
from sqlmesh_like.engine.sink import Sink
from sqlmesh_like.engine.sizes import buckets_for, tasks_for
from sqlmesh_like.engine.snapshots import take_snapshot
from sqlmesh_like.engine.steps import run_steps
from sqlmesh_like.engine.swap import recover
from sqlmesh_like.engine.tables import DELETED, HudiTable
from sqlmesh_like.engine.timeline import Timeline
from sqlmesh_like.errors import NodeError, RetryableError, SmlError
from sqlmesh_like.names import KEY, PARTITION, Column, TableName, is_hidden
from sqlmesh_like.plan.builder import PlannedModel
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.plan.contracts import refuse_breach
from sqlmesh_like.plan.history import AS_WRITTEN, RECORD_KEY, History, TableState, Volume
from sqlmesh_like.project.spec import Target
from sqlmesh_like.run.ports import Applied, Difference, Export, Rows
from sqlmesh_like.run.seeds import SeedTable

CARRY_AFTER_COMMITS = 10
"""An empty commit carries the frontier forward only when this many input commits are pending."""

_VANISHED = ("FileNotFoundException", "does not exist", "PATH_NOT_FOUND")


class SparkEngine:
    """Starts Spark when first used: a run in which nothing changed never does."""

    def __init__(self, target: Target, history: History, start: Callable[[], SparkSession]) -> None:
        self._target = target
        self._history = history
        self._start = start
        self._lock = Lock()
        self._changes = SharedChanges()
        self._shared: SparkSession | None = None

    def session(self) -> SparkSession:
        """A session with its own views, on the one Spark of this process."""
        with self._lock:
            if self._shared is None:
                self._shared = self._start()
        return self._shared.newSession()

    def release(self) -> None:
        self._changes.release()

    def stop(self) -> None:
        self.release()
        with self._lock:
            if self._shared is not None:
                self._shared.stop()
                self._shared = None

    def apply(self, planned: PlannedModel, shared: Collection[str] = ()) -> Applied:
        bindings = Bindings(self.session(), planned, self._changes, shared)
        try:
            applied = self._apply(planned, bindings)
            if applied.committed:
                self._register(bindings.session, planned)
            return applied
        except (Py4JJavaError, PySparkException) as error:
            raise _failure(planned, error) from error
        finally:
            bindings.release()

    def _apply(self, planned: PlannedModel, bindings: Bindings) -> Applied:
        plan = planned.compiled.table
        match planned.strategy:
            case "row_based" | "aggregate_merge" | "group_recompute" if plan.program is not None:
                return self._merge(planned, plan.program, bindings)
            case "partition_rescan" if plan.rescan is not None:
                return self._rescan(planned, plan.rescan, bindings)
            case "append" | "merge" | "delete+insert" | "insert_overwrite":
                return self._branch(planned, bindings)
            case "no_op":
                return Applied("no_op", 0, 0, committed=False)
        return self._rebuild(planned, bindings)

    def _branch(self, planned: PlannedModel, bindings: Bindings) -> Applied:
        ends = {item.ref.unique_id: item.end for item in planned.inputs}
        given = bindings.run_as_written(frozen(planned.compiled.facts.tree, planned.now), ends).persist()
        bindings.steps["_given"] = given  # read more than once, and not twice alike where it calls rand()
        _require_storable(given, planned)
        target = self._sink(planned)
        return write_branch(planned, given, _stored(target, bindings), target, self._must_carry(planned))

    def _register(self, session: SparkSession, planned: PlannedModel) -> None:
        model = planned.compiled.model
        partition_field = PARTITION if model.config.partition_by else None
        sync(session, self._target, model.table, planned.target.uri, partition_field)

    def _merge(self, planned: PlannedModel, program: DeltaProgram, bindings: Bindings) -> Applied:
        signed = run_steps(program, bindings)
        target = self._sink(planned)
        actions = sinks.one_action_a_key(signed, target).persist()
        bindings.steps["_actions"] = actions
        counts = sinks.count_actions(actions, target)
        self._require_kept(planned)
        if target.unique_key and counts.upserts:
            staying = _stored(target, bindings).join(actions.select(KEY), [KEY], "left_anti")
            sinks.check_entering(actions.where(~F.col(DELETED)), staying, target)
        if not counts.upserts and not counts.deletes and not self._must_carry(planned):
            return Applied(planned.strategy, 0, 0, committed=False)
        record = planned.record(planned.strategy, target.table.buckets, vars(counts))
        sinks.merge(actions, target, {RECORD_KEY: record.to_json()})
        return Applied(planned.strategy, counts.upserts, counts.deletes, committed=True)

    def _require_kept(self, planned: PlannedModel) -> None:
        """Raises RetryableError where a cleaner came by since the plan: Hudi's reader would have shown fewer rows."""
        for item in planned.inputs:
            if item.state.kind != "mor" or not item.has_moved or item.start is None or item.end is None:
                continue
            if lost := self._history.lost(item.state.uri, item.start, item.end):
                raise RetryableError(f"{item.ref.table}: {lost}", hint="run again, which plans anew")

    def _rescan(self, planned: PlannedModel, rescan: RescanProgram, bindings: Bindings) -> Applied:
        bindings.keep(AFFECTED, bindings.run(rescan.affected), persist=True)
        values = bindings.steps[AFFECTED]
        target = self._sink(planned)
        names = partition_columns(len(rescan.partition_by))
        renamed = values.select(*[F.col(a).alias(b) for a, b in zip(names, rescan.partition_by, strict=True)])
        paths = target_paths(renamed, rescan.partition_by)
        if not paths and not self._must_carry(planned):
            return Applied("partition_rescan", 0, 0, committed=False)
        rows = bindings.run(rescan.query, rescan.prune)
        record = planned.record("partition_rescan", target.table.buckets, {"partitions": len(paths)})
        if not paths:
            sinks.merge(sinks.no_actions(rows, target), target, {RECORD_KEY: record.to_json()})
            return Applied("partition_rescan", 0, 0, committed=True)
        if target.unique_key:
            rescanned = [path.removeprefix(f"{PARTITION}=") for path in paths]
            staying = _stored(target, bindings).where(~F.col(PARTITION).isin(rescanned))
            sinks.check_entering(rows, staying, target)
        sinks.overwrite(rows, target, paths, {RECORD_KEY: record.to_json()})
        return Applied("partition_rescan", _rows_written(target.table.uri), 0, committed=True)

    def _rebuild(self, planned: PlannedModel, bindings: Bindings) -> Applied:
        if recover(planned.target.uri):
            raise RetryableError(f"{planned.compiled.model.table}: a swap cut short by a crash was finished: plan anew")
        frame, strategy_reasons, is_as_derived = self._whole(planned, bindings)
        target = self._sink(planned)
        if target.unique_key:
            sinks.check_rows(frame, target)
        record = planned.record("full_refresh", target.table.buckets, {})
        if not is_as_derived:
            # The stored rows lack the state that the program needs: no later run may follow the change.
            record = replace(record, fingerprint=record.fingerprint + AS_WRITTEN)
        sinks.rebuild(frame, target, {RECORD_KEY: record.to_json()})
        return Applied("full_refresh", _rows_written(target.table.uri), 0, True, strategy_reasons)

    def _whole(self, planned: PlannedModel, bindings: Bindings) -> tuple[DataFrame, tuple[Reason, ...], bool]:
        """All rows of the model with keys and state; whether they are those of the derived plan."""
        ends = {item.ref.unique_id: item.end for item in planned.inputs}
        written = bindings.run_as_written(frozen(planned.compiled.facts.tree, planned.now), ends)
        _require_storable(written, planned)
        refuse_breach(planned.compiled.model, tuple(_visible(written)))
        build = planned.compiled.table.build
        if build is None or any(item.state.kind == "files" for item in planned.inputs):
            return keyed_by_content(written), (), build is None
        derived = bindings.run(build)
        if not _same_columns(derived, written):
            found = reason("TYP003", f"derived {_described(derived)}, Spark says {_described(written)}")
            return keyed_by_content(written), (found,), False
        return derived, (), True

    def take(self, planned: PlannedModel) -> Applied:
        bindings = Bindings(self.session(), planned)
        try:
            applied = take_snapshot(planned, bindings, self._sink(planned), self._must_carry(planned))
            if applied.committed:
                self._register(bindings.session, planned)
            return applied
        except (Py4JJavaError, PySparkException) as error:
            raise _failure(planned, error) from error
        finally:
            bindings.release()

    def load(self, table: SeedTable, state: TableState, now: datetime) -> None:
        with _failing(table.seed.path):
            session = self.session()
            load_seed(session, table, state, now, self._target.hudi)
            sync(session, self._target, table.seed.table, state.uri, None)

    def verify(self, planned: PlannedModel, limit: int) -> Difference:
        record = planned.target.record
        if record is None:
            raise NodeError(f"{planned.compiled.model.table} was not written by a run", hint="run it first")
        inputs = tuple(replace(item, end=record.frontier.get(item.ref.unique_id)) for item in planned.inputs)
        now = datetime.fromisoformat(record.now)
        bindings = Bindings(self.session(), replace(planned, inputs=inputs, now=now))
        try:
            tree = frozen(planned.compiled.facts.tree, now)
            expected = bindings.run_as_written(tree, record.frontier)
            if any(found.rule in TIED for found in planned.compiled.classification.reasons):
                build = planned.compiled.table.build
                assert build is not None
                expected = bindings.run(build).drop(KEY)
            timeline = Timeline(planned.target.uri)
            assert timeline.frontier is not None
            stored = feed_of(bindings.session, timeline).current(timeline.frontier).drop(KEY)
            return difference(stored.select(*[f"`{name}`" for name in expected.columns]), expected, limit)
        except (Py4JJavaError, PySparkException) as error:
            raise _failure(planned, error) from error

    def query(self, tree: exp.Expr, tables: Mapping[TableName, TableState], limit: int) -> Rows:
        with _failing("the query failed"):
            return _rows(bound(self.session(), tree, tables), limit)

    def changes(self, state: TableState, since: str, limit: int) -> Rows:
        assert state.frontier is not None
        with _failing(f"the changes of {state.uri} cannot be read"):
            feed = feed_of(self.session(), Timeline(state.uri))
            return _rows(described(feed.changes(since, state.frontier)), limit)

    @contextmanager
    def export(self, state: TableState, since: str | None, staging: str) -> Iterator[Export]:
        with _failing(f"{state.uri} cannot be published"), exported(self.session(), state, since, staging) as export:
            yield export

    def compact(self, uri: str) -> int:
        with _failing(f"compacting {uri} failed"):
            return compact(self.session(), uri)

    def keep(self, tree: exp.Expr, tables: Mapping[TableName, TableState], place: TablePlace, now: datetime) -> bool:
        with _failing(f"the failures cannot be stored in {place.table}"):
            frame = bound(self.session(), tree, tables)
            return keep_rows(keyed_by_content(frame), place, self._history.state(place.uri), now, self._target.hudi)

    def execute(self, statement: str, tables: Mapping[TableName, TableState]) -> None:
        session = self.session()
        try:
            register(session, tables)
            session.sql(statement).collect()
        except (Py4JJavaError, PySparkException) as error:
            raise NodeError(_first_line(error)) from error

    def clean(self, uri: str, retain: int) -> None:
        with _failing(f"cleaning {uri} failed"):
            clean_history(self.session(), uri, retain)

    def _sink(self, planned: PlannedModel) -> Sink:
        config = planned.compiled.model.config
        state = planned.target
        options = {**self._target.hudi, **config.hudi}
        record = state.record
        volume = _volume(planned, self._history) if record is None or planned.strategy == "full_refresh" else Volume()
        partitions = volume.partitions if config.partition_by else 1
        table = HudiTable(
            uri=state.uri,
            name=str(planned.compiled.model.table).replace(".", "_"),
            key=(KEY,),
            partition_field=PARTITION if config.partition_by else None,
            table_type=config.table_type,
            buckets=buckets_for(volume.bytes, partitions, options) if record is None else record.buckets,
            tasks=tasks_for(volume.bytes, options),
            options={key: str(value) for key, value in options.items()},
        )
        # Of other strategies of an author dbt asks no key to be one: rows are added beside, or removed by it.
        is_key = planned.compiled.model.author_strategy in (None, "merge")
        return Sink(table, config.partition_by, config.unique_key if is_key else (), state)

    def _must_carry(self, planned: PlannedModel) -> bool:
        moved = [item for item in planned.inputs if item.has_moved and item.start and item.end]
        return any(
            self._history.pending_commits(item.state.uri, item.start or "", item.end or "") >= CARRY_AFTER_COMMITS
            for item in moved
        )


def open_engine(
    target: Target, history: History, log_file: Path, progress: Callable[[], AbstractContextManager[Progress]]
) -> SparkEngine:
    """An engine that starts Spark when it is first used, showing downloads by `progress`."""

    def start() -> SparkSession:
        with progress() as shown:
            return start_session(target, log_file=log_file, progress=shown)

    return SparkEngine(target, history, start)


def _stored(target: Sink, bindings: Bindings) -> DataFrame:
    timeline = Timeline(target.table.uri)
    assert timeline.frontier is not None
    return feed_of(bindings.session, timeline).current(timeline.frontier, hidden=True)


def _volume(planned: PlannedModel, history: History) -> Volume:
    """About how much a whole write of the model is: its inputs, and a tenth of them where groups are merged."""
    lake = [item for item in planned.inputs if item.state.kind in ("cow", "mor") and item.end]
    found = [history.volume(item.state.uri, item.end or "") for item in lake]
    share = 10 if planned.compiled.classification.strategy == "aggregate_merge" else 1
    partitions = max((each.partitions for each in found), default=1)
    return Volume(sum(each.bytes for each in found) // share, partitions=partitions)


def _require_storable(frame: DataFrame, planned: PlannedModel) -> None:
    bad = [name for name in frame.columns if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or is_hidden(name)]
    if bad:
        raise NodeError(
            f"{planned.compiled.model.path}: a Hudi table cannot have a column named {bad[0]!r}",
            hint="give it an alias of letters, digits and underscores",
        )
    unknown = [name for name in planned.compiled.model.config.partition_by if name not in frame.columns]
    if unknown:
        hint = f"columns: {', '.join(frame.columns)}"
        raise NodeError(f"{planned.compiled.model.path}: no column {unknown[0]!r} to partition by", hint=hint)


def _visible(frame: DataFrame) -> list[Column]:
    return [column for column in sinks.schema_of(frame) if not is_hidden(column.name)]


def _same_columns(derived: DataFrame, written: DataFrame) -> bool:
    return _visible(derived) == _visible(written)


def _described(frame: DataFrame) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in _visible(frame))


def _rows_written(uri: str) -> int:
    commits = Timeline(uri).data_commits
    return sum(write.rows for write in commits[-1].writes) if commits else 0


def _rows(frame: DataFrame, limit: int) -> Rows:
    rows = (frame if limit < 0 else frame.limit(limit)).collect()
    return Rows(sinks.schema_of(frame), tuple(tuple(row) for row in rows))


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """What Spark raises within is a NodeError that says what failed."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise NodeError(f"{what}: {_first_line(error)}") from error


def _failure(planned: PlannedModel, error: Exception) -> SmlError:
    text = _first_line(error)
    name = planned.compiled.model.table
    if any(sign in str(error) for sign in _VANISHED):
        hint = "a data file vanished while it was read: run again, which plans anew"
        return RetryableError(f"{name}: {text}", hint=hint)
    return NodeError(f"{planned.compiled.model.path}: {name}: {text}")


def _first_line(error: Exception) -> str:
    """What Spark says and, where Hudi wrapped it, the cause at the bottom: only that names the file or the value."""
    if not isinstance(error, Py4JJavaError):
        return _line(str(error)) or type(error).__name__
    outer = root = error.java_exception
    while root.getCause() is not None:
        root = root.getCause()
    lines = dict.fromkeys([_line(outer.toString()), _line(root.toString())])
    return "; ".join(line for line in lines if line)


def _line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
