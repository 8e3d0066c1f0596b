"""Nodes in parallel, each after those it needs. Owns order, threads and what is skipped; the executor does the work.

A signal to stop lets running nodes finish: their commits are complete, and `sml retry` continues with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like import stop_signals
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.run.result import NodeResult, RenderedNode, blocks


class Listener(Protocol):
    """Notified of each node as it starts and ends, from any thread."""

    def started(self, number: int, total: int, node: RenderedNode) -> None: ...

    def ended(self, number: int, total: int, result: NodeResult) -> None: ...


class NodeWork(Protocol):
    """Executes a node whose needs are met, and skips one that can no longer run."""

    def execute(self, node: RenderedNode) -> NodeResult: ...

    def skip(self, node: RenderedNode, why: str) -> NodeResult: ...


@dataclass(frozen=True)
class Pace:
    threads: int = 1
    fail_fast: bool = False


class Schedule:
    """Runs nodes whose needs are met, in parallel; skips those that need a failed one."""

    def __init__(
        self,
        nodes: Sequence[RenderedNode],
        needs: Mapping[str, frozenset[str]],
        work: NodeWork,
        listener: Listener,
        pace: Pace,
    ) -> None:
        self._nodes: dict[str, tuple[int, RenderedNode]]
        self._nodes = {node.unique_id: (number, node) for number, node in enumerate(nodes, 1)}
        self._waiting = {unique_id: needs[unique_id] for unique_id in self._nodes}
        self._work = work
        self._listener = listener
        self._pace = pace
        self._done: dict[str, NodeResult] = {}
        self._running: dict[Future[NodeResult], str] = {}
        self._stopped = False

    def results(self) -> tuple[NodeResult, ...]:
        """Run everything; return results in the order in which nodes ended."""
        with stop_signals.defer_signals(), ThreadPoolExecutor(max_workers=self._pace.threads) as pool:
            self._start_ready(pool.submit)
            while self._running:
                ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._finish(self._running.pop(future), future.result())
                self._start_ready(pool.submit)
        return tuple(self._done.values())

    def _start_ready(self, submit: Callable[..., Future[NodeResult]]) -> None:
        """Start nodes that can run, in order; skip those that no longer can, and then those that need them."""
        progressed = True
        while progressed:
            progressed = False
            for unique_id in [i for i, needs in self._waiting.items() if needs <= self._done.keys()]:
                failed = [i for i in self._waiting[unique_id] if blocks(self._done[i])]
                if failed or self._stopped or stop_signals.is_wished():
                    self._skip(unique_id, failed)
                    progressed = True
                elif len(self._running) < self._pace.threads:
                    self._start(unique_id, submit)

    def _start(self, unique_id: str, submit: Callable[..., Future[NodeResult]]) -> None:
        number, node = self._nodes[unique_id]
        del self._waiting[unique_id]
        self._listener.started(number, len(self._nodes), node)
        self._running[submit(self._work.execute, node)] = unique_id

    def _skip(self, unique_id: str, failed: Sequence[str]) -> None:
        del self._waiting[unique_id]
        reason = "a signal to stop" if stop_signals.is_wished() else "--fail-fast"
        why = f"because of {', '.join(sorted(failed)) or reason}"
        self._finish(unique_id, self._work.skip(self._nodes[unique_id][1], why))

    def _finish(self, unique_id: str, result: NodeResult) -> None:
        self._done[unique_id] = result
        if result.status in ("error", "fail") and self._pace.fail_fast:
            self._stopped = True
        self._listener.ended(self._nodes[unique_id][0], len(self._nodes), result)


def needs_of(graph: Graph, selected: Sequence[str]) -> dict[str, frozenset[str]]:
    """For each selected node, the selected ones to wait for: those it reads, directly or not, and the tests of these.

    As in dbt a test gates a node only if the node reads everything that the test reads; a unit test gates its model.
    """
    tests = {i: frozenset(graph.parents(i)) for i in selected if graph.nodes[i].resource_type == "test"}
    units = {i: frozenset(graph.parents(i)) for i in selected if graph.nodes[i].resource_type == "unit_test"}
    needs: dict[str, frozenset[str]] = {}
    for unique_id in selected:
        if unique_id in units:  # it needs no table, and comes before its model
            needs[unique_id] = frozenset()
            continue
        above = graph.ancestors(unique_id)
        gates = [test for test, inputs in tests.items() if inputs and inputs <= above and unique_id not in tests]
        own = [test for test, models in units.items() if unique_id in models]
        needs[unique_id] = above.intersection(selected) | frozenset(gates) | frozenset(own)
    return needs


def running_order(graph: Graph, selected: Sequence[str]) -> list[str]:
    """Selected nodes in the order in which they may run one by one: unit tests come before their models."""
    order = graph.order(selected)
    units: dict[str, list[str]] = {}
    for unique_id in order:
        if graph.nodes[unique_id].resource_type == "unit_test":
            units.setdefault(graph.parents(unique_id)[0], []).append(unique_id)
    placed = [
        i
        for unique_id in order
        for i in (*units.pop(unique_id, ()), unique_id)
        if graph.nodes[unique_id].resource_type != "unit_test"
    ]
    return [*(i for rest in units.values() for i in rest), *placed]
