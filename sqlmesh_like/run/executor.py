"""Runs selected nodes in dependency order. Owns pinning and what is done with a model, a seed and a data test.

Inputs that this run does not build are pinned once, at its start: chains and diamonds see one consistent past. A table
that this run builds is read by its children as it left it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter

from sqlmesh_like.errors import RetryableError, SmlError
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.plan.live import Planner
from sqlmesh_like.render.rendered import RenderedModel, RenderedSeed, RenderedTest
from sqlmesh_like.run.ports import Engine
from sqlmesh_like.run.result import ModelResult, NodeResult, RenderedNode, RunResult, SeedResult, TestResult
from sqlmesh_like.run.schedule import Listener, Pace, Schedule, needs_of
from sqlmesh_like.run.seeds import SeedTable
from sqlmesh_like.run.tests import as_model, run_test

_ATTEMPTS = 2
"""A plan whose files vanish while they are read is made anew this often in all."""


@dataclass
class Executor:
    """One run of selected nodes, `threads` side by side. `seeds` holds the selected seeds' rows by unique id."""

    planner: Planner
    graph: Graph
    engine: Engine
    listener: Listener
    threads: int = 1
    fail_fast: bool = False
    seeds: Mapping[str, SeedTable] = field(default_factory=dict)
    _pinned: dict[str, TableState] = field(default_factory=dict)

    def run(self, selected: Sequence[str]) -> RunResult:
        """Run models, seeds and tests given by unique id. Errors of a node end up in its result; none is raised."""
        known = self._nodes()
        nodes = [known[unique_id] for unique_id in self.graph.order(selected)]
        self._pin(nodes)
        ordered = [node.unique_id for node in nodes]
        needs = needs_of(self.graph, ordered)
        pace = Pace(self.threads, self.fail_fast)
        return RunResult(Schedule(nodes, needs, self, self.listener, pace).results())

    def _nodes(self) -> dict[str, RenderedNode]:
        rendered = self.planner.rendered
        nodes: list[RenderedNode] = [*rendered.seeds, *rendered.tests]
        nodes += [model for model in rendered.models if model.config.materialized != "ephemeral"]
        return {node.unique_id: node for node in nodes}

    def _pin(self, nodes: Sequence[RenderedNode]) -> None:
        built = {node.unique_id for node in nodes}
        readers = [as_model(n) if isinstance(n, RenderedTest) else n for n in nodes if not isinstance(n, RenderedSeed)]
        read = dict.fromkeys(unique_id for reader in readers for unique_id in self.planner.inputs(reader))
        self._pinned = self.planner.catalog.states(unique_id for unique_id in read if unique_id not in built)

    def execute(self, node: RenderedNode) -> NodeResult:
        """Do one node's work; its failure is its result."""
        started, clock = datetime.now(UTC), perf_counter()
        try:
            return _timed(self._attempted(node), started, clock)
        except SmlError as error:
            return _timed(_without_work(node, "error", str(error)), started, clock)

    def skip(self, node: RenderedNode, why: str) -> NodeResult:
        return _without_work(node, "skipped", why)
