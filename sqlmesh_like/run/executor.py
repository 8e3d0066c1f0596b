"""Runs selected nodes in dependency order. Owns pinning and what is done with a model, a seed and a data test.

Inputs that this run does not build are pinned once, at its start: chains and diamonds see one consistent past. A table
that this run builds is read by its children as it left it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter

from sqlmesh_like.errors import RetryableError, SmlError
from sqlmesh_like.plan.explain import explain_estimate
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.planner import Planner
from sqlmesh_like.project.semantic.declarations import SavedQuery
from sqlmesh_like.render.rendered import (
    RenderedExposure,
    RenderedModel,
    RenderedSeed,
    RenderedSemantic,
    RenderedTest,
    RenderedUnitTest,
)
from sqlmesh_like.run.hooks import Hooks, HookTime
from sqlmesh_like.run.ports import Engine, Publisher
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
from sqlmesh_like.run.unit_tests import UnitWork


@dataclass
class Executor:
    """One run of selected nodes, `threads` side by side. `seeds` holds the selected seeds' rows by unique id, `units`
    does the selected unit tests. `runs_views`: the query of a view is run for its errors. `publisher`: tables are sent
    to where people look. `warnings_fail`: data tests fail where they would warn.
    """

    planner: Planner
    graph: Graph
    engine: Engine
    listener: Listener
    threads: int = 1
    fail_fast: bool = False
    seeds: Mapping[str, SeedTable] = field(default_factory=dict)
    units: UnitWork | None = None
    runs_views: bool = False
    hooks: Hooks | None = None
    publisher: Publisher | None = None
    broken: Mapping[str, SmlError] = field(default_factory=dict)  # nodes with an error that a check has found
    warnings_fail: bool = False
    _pinned: dict[str, TableState] = field(default_factory=dict)
    _shared: frozenset[str] = frozenset()

    def run(self, selected: Sequence[str]) -> RunResult:
        """Run models, seeds and tests given by unique id. Errors of a node end up in its result; none is raised."""
        known = self._nodes()
        nodes = [known[unique_id] for unique_id in running_order(self.graph, selected) if unique_id in known]
        self._pin(nodes)
        ordered = [node.unique_id for node in nodes]
        needs = needs_of(self.graph, ordered)
        pace = Pace(self.threads, self.fail_fast)
        try:
            return RunResult(Schedule(nodes, needs, self, self.listener, pace).results())
        finally:
            self.engine.release()

    def _nodes(self) -> dict[str, RenderedNode]:
        rendered = self.planner.rendered
        nodes: list[RenderedNode] = [*rendered.seeds, *rendered.tests, *rendered.unit_tests, *rendered.exposures]
        nodes += [one for one in rendered.semantic if isinstance(one.declared, SavedQuery)]
        nodes += [model for model in rendered.models if model.config.materialized != "ephemeral"]
        return {node.unique_id: node for node in nodes}

    def _pin(self, nodes: Sequence[RenderedNode]) -> None:
        built = {node.unique_id for node in nodes}
        readers = [as_model(n) if isinstance(n, RenderedTest) else n for n in nodes if not isinstance(n, _ALONE)]
        read = dict.fromkeys(unique_id for reader in readers for unique_id in self.planner.inputs(reader))
        self._pinned = self.planner.catalog.states(unique_id for unique_id in read if unique_id not in built)
        followed = Counter(
            unique_id for node in nodes if isinstance(node, RenderedModel) for unique_id in self.planner.inputs(node)
        )
        self._shared = frozenset(unique_id for unique_id, times in followed.items() if times > 1)

    def execute(self, node: RenderedNode) -> NodeResult:
        """Do one node's work; its failure is its result."""
        clock = perf_counter()
        started = datetime.now(UTC)
        try:
            if node.unique_id in self.broken:
                raise self.broken[node.unique_id]
            result = self._attempted(node)
        except SmlError as error:
            result = replace(_without_work(node, "error", str(error)), location=error.location)
        return replace(result, started=started, seconds=perf_counter() - clock)

    def skip(self, node: RenderedNode, why: str) -> NodeResult:
        return _without_work(node, "skipped", why)

    def _attempted(self, node: RenderedNode) -> NodeResult:
        try:
            return self._do(node, self._pinned)
        except RetryableError:
            # What was pinned may be what vanished: the second plan is made from the lake as it is now.
            return self._do(node, {})

    def _do(self, node: RenderedNode, pinned: Mapping[str, TableState]) -> NodeResult:
        match node:
            case RenderedSeed():
                return self._load(self.seeds[node.unique_id])
            case RenderedTest():
                verdict = run_test(
                    node, self.planner, self.engine, pinned, warnings_fail=self.warnings_fail
                )  # fmt: skip
                return TestResult(node, verdict.status, verdict.message, _NEVER, 0.0, verdict.failures, verdict.sample)
            case RenderedUnitTest():
                assert self.units is not None
                return self.units.execute(node)
            case RenderedModel():
                return self._published(self._build(node, pinned))
            case RenderedExposure() | RenderedSemantic():
                return UnbuiltResult(node, "no-op", "NO-OP", _NEVER, 0.0)

    def _published(self, result: ModelResult) -> ModelResult:
        """Send a model's table to where its config says, also where only that is left to do."""
        model, publisher = result.model, self.publisher
        if publisher is None or model.config.publish is None:
            return result
        try:
            sent = publisher.publish(model)
        except SmlError as error:
            message = f"the table is up to date, publishing it failed: {error}"
            return replace(result, status="error", message=message, is_unsent=True)
        has_sent = any(each.rows is not None for each in sent)
        status: NodeStatus = "success" if has_sent and result.status == "no-op" else result.status
        return replace(result, status=status, sent=sent)

    def _load(self, table: SeedTable) -> SeedResult:
        planner = self.planner
        state = planner.catalog.state(table.seed.unique_id)
        if is_loaded(table, state) and not planner.full_refresh:
            return SeedResult(table.seed, "no-op", "nothing changed", _NEVER, 0.0)
        self._hook(table.seed.unique_id, "pre_hook")
        self.engine.load(table, state, planner.now)
        self._hook(table.seed.unique_id, "post_hook")
        written = planner.catalog.history.last_write(state.uri)
        return SeedResult(table.seed, "success", "", _NEVER, 0.0, len(table.rows), written)

    def _build(self, model: RenderedModel, pinned: Mapping[str, TableState]) -> ModelResult:
        """Plan and apply one model."""
        if model.config.materialized == "view":
            if self.runs_views or model.asks_lake:
                self._try(model, pinned)
            return ModelResult(model, "success", "view, inlined where it is read", _NEVER, 0.0)
        planned = self.planner.plan(model, pinned)
        if model.config.snapshot is None:
            planned.require_allowed()
        if planned.strategy == "no_op":
            return ModelResult(model, "no-op", "nothing changed", _NEVER, 0.0, strategy="no_op")
        planned.require_inputs()
        self._hook(model.unique_id, "pre_hook")
        is_snapshot = model.config.snapshot is not None
        applied = self.engine.write_snapshot(planned) if is_snapshot else self.engine.apply(planned, self._shared)
        self._hook(model.unique_id, "post_hook")
        reasons = () if is_snapshot else (*applied.reasons, *planned.reasons)
        written = self.planner.catalog.history.last_write(planned.target.uri) if applied.committed else None
        status: NodeStatus = "warn" if applied.warning else "success"
        return ModelResult(
            model, status, applied.warning, _NEVER, 0.0, applied.strategy, applied.upserts, applied.deletes, reasons,
            written, explain_estimate(planned), engine=applied.engine, spark=applied.spark,
        )  # fmt: skip

    def _hook(self, unique_id: str, moment: HookTime) -> None:
        if self.hooks is not None:
            self.hooks.around(unique_id, moment)

    def _try(self, view: RenderedModel, pinned: Mapping[str, TableState]) -> None:
        """Run a view's query for its errors. Raises NodeError and the like."""
        live = self.planner.live(view)
        if not self.runs_views:
            return
        states = {i: pinned[i] if i in pinned else self.planner.catalog.state(i) for i in self.planner.inputs(live)}
        facts = self.planner.compile(live, states).facts
        self.engine.query(facts.tree, self.planner.tables(facts, states), 0)


_ALONE = (RenderedSeed, RenderedUnitTest, RenderedExposure, RenderedSemantic)
"""These read no table."""
_NEVER = datetime.min.replace(tzinfo=UTC)
"""Stands where `execute` puts the time."""


def _without_work(node: RenderedNode, status: NodeStatus, message: str) -> NodeResult:
    now = datetime.now(UTC)
    match node:
        case RenderedSeed():
            return SeedResult(node, status, message, now, 0.0)
        case RenderedTest() | RenderedUnitTest():
            return TestResult(node, status, message, now, 0.0)
        case RenderedModel():
            return ModelResult(node, status, message, now, 0.0)
        case RenderedExposure() | RenderedSemantic():
            return UnbuiltResult(node, status, message, now, 0.0)
