"""Runs selected nodes in dependency order. Owns pinning and what is done with a model, a seed and a data test.

Inputs that this run does not build are pinned once, at its start: chains and diamonds see one consistent state. A table
that this run builds is read by its children as this run left it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING

from sqlmesh_like.classify.rules import Reason
from sqlmesh_like.errors import Location, NewerVersionError, RetryableError, SmlError
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.history import CommitSummary, TableState
from sqlmesh_like.plan.model_plan import PlannedModel
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.config import HookTime
from sqlmesh_like.project.semantic.declarations import SavedQuery
from sqlmesh_like.render.rendered import (
    RenderedExposure,
    RenderedModel,
    RenderedSeed,
    RenderedSemantic,
    RenderedTest,
    RenderedUnitTest,
)
from sqlmesh_like.run.hooks import Hooks
from sqlmesh_like.run.ports import Engine, NamedColumns, Publisher, WriteResult, waited_seconds
from sqlmesh_like.run.result import (
    ModelResult,
    NodeResult,
    NodeStatus,
    RenderedNode,
    RunResult,
    SeedResult,
    TestResult,
    UnbuiltResult,
)
from sqlmesh_like.run.schedule import Listener, Pace, Schedule, needs_of, running_order
from sqlmesh_like.run.seeds import SeedTable, is_loaded
from sqlmesh_like.run.tests import as_model, run_test

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.classify.strategy import Strategy
    from sqlmesh_like.run.slices import Register, TableMoves
    from sqlmesh_like.run.unit_tests import UnitWork


@dataclass(frozen=True)
class RunPolicy:
    """How strict a run is. `runs_views`: the query of a view is run to find its errors. `warnings_fail`: data tests
    fail instead of warning. `notes_tables`: the executor has to know how the run left its tables. `backfill`: FROM..TO,
    the partitions that are computed again."""

    pace: Pace = field(default_factory=Pace)
    runs_views: bool = False
    warnings_fail: bool = False
    notes_tables: bool = False
    backfill: str | None = None


@dataclass
class Executor:
    """One run of selected nodes. `seeds` holds the selected seeds' rows by unique id, `units` runs the selected unit
    tests, `publisher` sends tables to the destinations in their models' config. `claim` takes the table's own lock
    before work on it, and says whether it did just now: then others could write the table until now. `register`: see
    `TableMaintenance`; None: no catalog is told of tables.
    """

    planner: Planner
    graph: Graph
    engine: Engine
    listener: Listener
    policy: RunPolicy = field(default_factory=RunPolicy)
    seeds: Mapping[str, SeedTable] = field(default_factory=dict)
    units: UnitWork | None = None
    hooks: Hooks | None = None
    publisher: Publisher | None = None
    claim: Callable[[str], bool] = lambda _uri: False
    moves: TableMoves | None = None
    register: Register | None = None
    notify: Callable[[str], None] = field(default=lambda _: None)
    broken: Mapping[str, SmlError] = field(default_factory=dict)  # nodes with an error that a check has found
    replanned: set[str] = field(default_factory=set)  # nodes that may have read other commits than the pinned ones
    _pinned: dict[str, TableState] = field(default_factory=dict)
    _left: Mapping[str, TableState] | None = None
    _nodes_of_run: Sequence[RenderedNode] = ()

    def run(self, selected: Sequence[str]) -> RunResult:
        """Run models, seeds and tests given by unique id. Errors of a node end up in its result; none is raised."""
        known = self._nodes()
        nodes = [known[unique_id] for unique_id in running_order(self.graph, selected) if unique_id in known]
        ordered = [node.unique_id for node in nodes]
        needs = needs_of(self.graph, ordered)
        try:
            with self.planner.catalog.keep([*ordered, *self._inputs_of(nodes)]):
                self._pin(nodes)
                self.planner = self.planner.with_measured_jobs(ordered)
                result = RunResult(Schedule(nodes, needs, self, self.listener, self.policy.pace).results())
                if self.policy.notes_tables and self.hooks is None and result.ok:
                    with suppress(SmlError):  # whoever wants to know asks again, and reports it
                        tables = [node.unique_id for node in nodes if not isinstance(node, RenderedTest)]
                        self._left = self.planner.catalog.states(tables)
                return result
        finally:
            self.engine.release()

    @property
    def pinned(self) -> Mapping[str, TableState]:
        """The tables, by unique id, that the run read and did not build, as they were at its start."""
        return self._pinned

    @property
    def left(self) -> Mapping[str, TableState] | None:
        """The tables of the run's nodes, by unique id, as it left them; None where that is not known.

        Among hooks it is not: those at the end of a run may write any table.
        """
        return self._left

    def _nodes(self) -> dict[str, RenderedNode]:
        rendered = self.planner.rendered
        nodes: list[RenderedNode] = [*rendered.seeds, *rendered.tests, *rendered.unit_tests, *rendered.exposures]
        nodes += [one for one in rendered.semantic if isinstance(one.declared, SavedQuery)]
        nodes += [model for model in rendered.models if model.config.materialized != "ephemeral"]
        return {node.unique_id: node for node in nodes}

    def _pin(self, nodes: Sequence[RenderedNode]) -> None:
        built, read = {node.unique_id for node in nodes}, self._inputs_of(nodes)
        self._pinned = self.planner.catalog.states(unique_id for unique_id in read if unique_id not in built)
        self._nodes_of_run = nodes

    @cached_property
    def _shared(self) -> NamedColumns:
        """Which columns the models of the run name of each table that several read; a run that applies nothing need not
        know.
        """
        words: dict[str, list[frozenset[str] | None]] = {}
        for model in self._nodes_of_run:
            if isinstance(model, RenderedModel):
                for unique_id in self.planner.inputs(model):
                    words.setdefault(unique_id, []).append(self.planner.words(model))
        return {
            unique_id: None if None in of_models else frozenset[str]().union(*filter(None, of_models))
            for unique_id, of_models in words.items()
            if len(of_models) > 1
        }

    def _inputs_of(self, nodes: Sequence[RenderedNode]) -> list[str]:
        readers = [as_model(n) if isinstance(n, RenderedTest) else n for n in nodes if not isinstance(n, _ALONE)]
        return list(dict.fromkeys(unique_id for reader in readers for unique_id in self.planner.inputs(reader)))

    def execute(self, node: RenderedNode) -> NodeResult:
        """Do one node's work; a failure becomes its result."""
        watch = _Stopwatch()
        try:
            if node.unique_id in self.broken:
                raise self.broken[node.unique_id]
            try:
                return self._do(node, self._pinned, watch)
            except RetryableError:
                # A pinned version may be the one that vanished: the second plan uses the lake as it is now.
                self.planner.catalog.history.renew()
                self.replanned.add(node.unique_id)
                return self._do(node, {}, watch)
        except NewerVersionError:
            raise
        except SmlError as error:
            return _without_work(node, "error", str(error), watch.started, watch.seconds, error.location)

    def skip(self, node: RenderedNode, why: str) -> NodeResult:
        return _without_work(node, "skipped", why, datetime.now(UTC), 0.0)

    def _do(self, node: RenderedNode, pinned: Mapping[str, TableState], watch: _Stopwatch) -> NodeResult:
        match node:
            case RenderedSeed():
                return self._load(self.seeds[node.unique_id], watch)
            case RenderedTest():
                verdict = run_test(
                    node, self.planner, self.engine, pinned, warnings_fail=self.policy.warnings_fail
                )  # fmt: skip
                return TestResult(
                    node, verdict.status, verdict.message, watch.started, watch.seconds, verdict.failures,
                    verdict.sample,
                )  # fmt: skip
            case RenderedUnitTest():
                assert self.units is not None
                return self.units.execute(node)
            case RenderedModel():
                return self._publish_model(node, self._build(node, pinned), watch)
            case RenderedExposure() | RenderedSemantic():
                return UnbuiltResult(node, "no-op", "NO-OP", watch.started, watch.seconds)

    def _load(self, table: SeedTable, watch: _Stopwatch) -> SeedResult:
        planner, seed = self.planner, table.seed
        state = planner.catalog.state(seed.unique_id)
        if is_loaded(table, state) and not planner.full_refresh:
            return SeedResult(seed, "no-op", "nothing changed", watch.started, watch.seconds)
        if self.claim(state.uri):
            planner.catalog.history.renew(state.uri)
            return self._load(table, watch)
        self._hook(seed.unique_id, "pre_hook")
        self.engine.load(table, state, planner.now)
        planner.catalog.history.renew(state.uri)
        self._hook(seed.unique_id, "post_hook")
        written = planner.catalog.history.last_write(state.uri)
        return SeedResult(seed, "success", "", watch.started, watch.seconds, len(table.rows), written)

    def _build(self, model: RenderedModel, pinned: Mapping[str, TableState]) -> _BuiltModel:
        """Plan and apply one model."""
        if model.config.materialized == "view":
            for below in self.planner.views_below(model):
                if below.unique_id in self.broken:  # an ephemeral model is no node that fails by itself
                    raise self.broken[below.unique_id]
            if self.policy.runs_views or model.asks_lake:
                self._try(model, pinned)
            return _BuiltModel("success", "view, inlined where it is read")
        planned = self.planner.plan(model, pinned)
        if model.config.snapshot is None:
            planned.require_allowed()
        if self.policy.backfill is not None:
            from sqlmesh_like.plan.slices.backfill import require_backfill

            require_backfill(planned, self.policy.backfill)
        if planned.has_remains and self.moves is not None:
            self.moves.remove_beside(planned.target.uri)
        if planned.strategy == "no_op" and self.policy.backfill is None:
            return _BuiltModel("no-op", "nothing changed", "no_op")
        if self.claim(planned.target.uri):
            self.planner.catalog.history.renew(planned.target.uri)
            return self._build(model, pinned)
        planned.require_inputs()
        self._hook(model.unique_id, "pre_hook")
        applied = self._apply_plan(planned) if planned.strategy != "no_op" else WriteResult("no_op", 0, 0, False)
        if planned.follows:  # the table is now that of the edited query, or built, at the frontier that it had
            rest = self._plan_next(model, pinned)
            applied = applied.with_next(self._apply_plan(rest)) if rest.strategy != "no_op" else applied
        if self.policy.backfill is not None:
            from sqlmesh_like.plan.slices.backfill import plan_backfill

            state = self.planner.catalog.state(model.unique_id)
            applied = self._apply_plan(plan_backfill(planned, state, self.policy.backfill)).with_next(applied)
        self._hook(model.unique_id, "post_hook")
        from sqlmesh_like.plan.explain import explain_estimate  # where nothing was done, there is none

        return _BuiltModel(
            "warn" if applied.warning else "success", applied.warning, applied.strategy, applied,
            reasons=() if model.config.snapshot is not None else (*applied.reasons, *planned.reasons),
            written=self.planner.catalog.history.last_write(planned.target.uri) if applied.committed else None,
            estimate=explain_estimate(planned),
        )  # fmt: skip

    def _plan_next(self, model: RenderedModel, pinned: Mapping[str, TableState]) -> PlannedModel:
        """What is left to do for a table that this run has just written: not all of it again."""
        return self.planner.plan(replace(model, config=replace(model.config, full_refresh=False)), pinned)

    def _apply_plan(self, planned: PlannedModel) -> WriteResult:
        from sqlmesh_like.run.slices import SliceRun

        is_snapshot = planned.compiled.model.config.snapshot is not None
        history = self.planner.catalog.history
        try:
            if planned.slices is not None and self.moves is not None:
                work = SliceRun(self.engine, history, self.moves, self.notify, self._shared, self.register)
                return work.run(planned)
            return self.engine.write_snapshot(planned) if is_snapshot else self.engine.apply(planned, self._shared)
        finally:
            history.renew(planned.target.uri)

    def _publish_model(self, model: RenderedModel, built: _BuiltModel, watch: _Stopwatch) -> ModelResult:
        """Publish the model's table as its config says, even if nothing else was to do, and return the whole result."""
        work = built.work
        result = ModelResult(
            model, built.status, built.message, watch.started, watch.seconds,
            built.strategy, work.upserts if work else 0, work.deletes if work else 0, built.reasons,
            built.written, built.estimate, engine=work.engine if work else None, spark=work.spark if work else None,
        )  # fmt: skip
        if self.publisher is None or model.config.publish is None:
            return result
        return replace(with_publication(result, self.publisher), seconds=watch.seconds)

    def _hook(self, unique_id: NodeId, moment: HookTime) -> None:
        if self.hooks is not None and self.hooks.around(unique_id, moment):
            self.planner.catalog.history.renew()  # a statement may have written any table

    def _try(self, view: RenderedModel, pinned: Mapping[str, TableState]) -> None:
        """Render a view again if it queries the lake; with `runs_views` also run its query. Raises what is wrong."""
        from sqlmesh_like.plan.checks.contracts import refuse_unlike

        live = self.planner.live(view)
        if not self.policy.runs_views:
            return
        states = {i: pinned[i] if i in pinned else self.planner.catalog.state(i) for i in self.planner.inputs(live)}
        facts = self.planner.compile(live, states).facts
        rows = self.engine.query(facts.tree, self.planner.tables(facts, states), 0)
        refuse_unlike(live, facts.schema, rows.schema)


def with_publication(result: ModelResult, publisher: Publisher) -> ModelResult:
    """Publish a model's table, and return the result with where it was sent, or why it was not."""
    try:
        sent = publisher.publish(result.model)
    except SmlError as error:
        message = f"the table is up to date, publishing it failed: {error}"
        return replace(result, status="error", message=message, is_unsent=True)
    has_news = result.status == "no-op" and any(each.rows is not None for each in sent)
    return replace(result, status="success" if has_news else result.status, sent=sent)


_ALONE = (RenderedSeed, RenderedUnitTest, RenderedExposure, RenderedSemantic)
"""Nodes for which a run reads no table."""


class _Stopwatch:
    """When a node's work began and how long it has taken, without waiting for an engine to start."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC)
        self._clock, self._waited = perf_counter(), waited_seconds()

    @property
    def seconds(self) -> float:
        return perf_counter() - self._clock - (waited_seconds() - self._waited)


@dataclass(frozen=True)
class _BuiltModel:
    """The result of building a model, before its table is published; `work` None: there was nothing to do."""

    status: NodeStatus
    message: str
    strategy: Strategy | None = None
    work: WriteResult | None = None
    reasons: tuple[Reason, ...] = ()
    written: CommitSummary | None = None
    estimate: Mapping[str, object] | None = None


def _without_work(
    node: RenderedNode,
    status: NodeStatus,
    message: str,
    started: datetime,
    seconds: float,
    place: Location | None = None,
) -> NodeResult:
    match node:
        case RenderedSeed():
            return SeedResult(node, status, message, started, seconds, location=place)
        case RenderedTest() | RenderedUnitTest():
            return TestResult(node, status, message, started, seconds, location=place)
        case RenderedModel():
            return ModelResult(node, status, message, started, seconds, location=place)
        case RenderedExposure() | RenderedSemantic():
            return UnbuiltResult(node, status, message, started, seconds, location=place)
