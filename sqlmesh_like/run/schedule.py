"""Nodes in parallel, each after those it needs. Owns order, threads and what is skipped; the executor does the work.

A signal to stop lets running nodes finish: their commits are complete, and `sml retry` continues with the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from sqlmesh_like import stop_signals
from sqlmesh_like.plan.graph import Graph
from sqlmesh_like.run.above import Above
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
    """Runs nodes whose needs are met, in parallel and in their order; skips those that need a failed one.

    `needs`: of each node those that it waits for (`needs_of`).
    """

    def __init__(
        self,
        nodes: Sequence[RenderedNode],
        needs: Mapping[str, frozenset[str]],
        work: NodeWork,
        listener: Listener,
        pace: Pace,
    ) -> None:
        self._nodes = nodes
        self._needs = needs
        self._work = work
        self._listener = listener
        self._pace = pace
        self._unmet = [len(needs[node.unique_id]) for node in nodes]
        self._ready = [index for index, unmet in enumerate(self._unmet) if not unmet]  # a heap
        self._waiting: dict[str, list[int]] = {}
        for index, node in enumerate(nodes):
            for needed in needs[node.unique_id]:
                self._waiting.setdefault(needed, []).append(index)
        self._failures: dict[str, frozenset[str]] = {}  # of nodes that block others: those that failed above, or they
        self._done: list[NodeResult] = []
        self._running: dict[Future[NodeResult], int] = {}
        self._stopped = False

    def results(self) -> tuple[NodeResult, ...]:
        """Run everything; return results in the order in which nodes ended."""
        with stop_signals.defer_signals(), ThreadPoolExecutor(max_workers=self._pace.threads) as pool:
            self._start_ready(pool.submit)
            while self._running:
                ended, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in ended:
                    self._finish(self._running.pop(future), future.result(), frozenset())
                self._start_ready(pool.submit)
        return tuple(self._done)

    def _start_ready(self, submit: Callable[..., Future[NodeResult]]) -> None:
        """Start nodes that can run while there are threads; skip those that no longer can, and those that need them."""
        while self._ready:
            node = self._nodes[self._ready[0]]
            failures = frozenset().union(*(self._failures.get(needed, ()) for needed in self._needs[node.unique_id]))
            if failures or self._stopped or stop_signals.is_wished():
                self._skip(heapq.heappop(self._ready), failures)
            elif len(self._running) < self._pace.threads:
                index = heapq.heappop(self._ready)
                self._listener.started(index + 1, len(self._nodes), node)
                self._running[submit(self._work.execute, node)] = index
            else:
                return

    def _skip(self, index: int, failures: frozenset[str]) -> None:
        reason = "a signal to stop" if stop_signals.is_wished() else "--fail-fast"
        why = f"because of {', '.join(sorted(failures)) or reason}"
        self._finish(index, self._work.skip(self._nodes[index], why), failures)

    def _finish(self, index: int, result: NodeResult, failures: frozenset[str]) -> None:
        """`failures`: those because of which it was skipped."""
        unique_id = self._nodes[index].unique_id
        self._done.append(result)
        if blocks(result):
            self._failures[unique_id] = failures or frozenset({unique_id})
        if result.status in ("error", "fail") and self._pace.fail_fast:
            self._stopped = True
        for waiting in self._waiting.pop(unique_id, ()):
            self._unmet[waiting] -= 1
            if not self._unmet[waiting]:
                heapq.heappush(self._ready, waiting)
        self._listener.ended(index + 1, len(self._nodes), result)


def needs_of(graph: Graph, selected: Sequence[str]) -> dict[str, frozenset[str]]:
    """For each selected node, the selected ones that it waits for: the nearest that it reads, and the tests of what it
    reads. What these wait for in turn is not named again, so the sizes add up to about those of the graph.

    As in dbt a test gates a node only if the node reads everything that the test reads; a unit test gates its model.
    """
    types = {unique_id: graph.nodes[unique_id].resource_type for unique_id in selected}
    tests = [unique_id for unique_id in selected if types[unique_id] == "test"]
    units = [unique_id for unique_id in selected if types[unique_id] == "unit_test"]
    above = Above(graph)
    among = above.members(unique_id for unique_id in selected if types[unique_id] not in ("test", "unit_test"))
    needs = {
        unique_id: set() if types[unique_id] == "unit_test" else set(above.nearest(unique_id, among))
        for unique_id in selected
    }  # a unit test needs no table, and comes before its model
    for test in tests:
        for gated in above.first_readers(graph.parents(test), among):
            needs[gated].add(test)
    for unit in units:
        for model in graph.parents(unit):
            if model in needs:
                needs[model].add(unit)
    return {unique_id: frozenset(each) for unique_id, each in needs.items()}


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
