"""Order, skipping and gates of a run, with work that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from sqlmesh_like.names import TableName
from sqlmesh_like.plan.graph import Graph, Node, ResourceType
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import RenderedModel, RenderedTest, SourceMap
from sqlmesh_like.run.result import ModelResult, NodeResult, NodeStatus, RenderedNode, TestResult
from sqlmesh_like.run.schedule import Pace, Schedule, needs_of, running_order

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def graph(**inputs: str) -> Graph:
    """Nodes by name and what they read; `test_…` are tests, `unit_…` unit tests of the model they name."""
    edges = frozenset((read, name) for name, reads in inputs.items() for read in reads.split())
    return Graph({name: Node(name, name, _type(name), "", ()) for name in inputs}, edges)


def _type(name: str) -> ResourceType:
    return "test" if name.startswith("test_") else "unit_test" if name.startswith("unit_") else "model"


class Pretended:
    """Work that ends as told, and a listener that remembers the order of starts."""

    def __init__(self, outcomes: Mapping[str, NodeStatus]) -> None:
        self.outcomes = outcomes
        self.order: list[str] = []

    def started(self, number: int, total: int, node: RenderedNode) -> None:
        self.order.append(node.unique_id)

    def ended(self, number: int, total: int, result: NodeResult) -> None: ...

    def execute(self, node: RenderedNode) -> NodeResult:
        return self._result(node, self.outcomes.get(node.unique_id, "success"), "")

    def skip(self, node: RenderedNode, why: str) -> NodeResult:
        return self._result(node, "skipped", why)

    def _result(self, node: RenderedNode, status: NodeStatus, message: str) -> NodeResult:
        if isinstance(node, RenderedTest):
            return TestResult(node, status, message, NOW, 0.0)
        assert isinstance(node, RenderedModel)
        return ModelResult(node, status, message, NOW, 0.0)


def node_of(node: Node) -> RenderedNode:
    if node.resource_type != "model":
        return RenderedTest(node.unique_id, node.name, "", "", "error", ())
    name = node.unique_id
    return RenderedModel(name, name, "", "", "", ModelConfig(), TableName("s", name), (), SourceMap("", ""))


def run(
    over: Graph, threads: int = 1, fail_fast: bool = False, **outcomes: NodeStatus
) -> tuple[Pretended, dict[str, NodeResult]]:
    work = Pretended(outcomes)
    order = running_order(over, list(over.nodes))
    nodes = [node_of(over.nodes[unique_id]) for unique_id in order]
    results = Schedule(nodes, needs_of(over, order), work, work, Pace(threads, fail_fast)).results()
    return work, {result.node.unique_id: result for result in results}


CHAIN = graph(a="", b="a", c="b", test_a="a", aside="", test_ab="a b")


@pytest.mark.parametrize("threads", [1, 4])
def test_tests_run_before_what_reads_their_model(threads: int) -> None:
    work, results = run(CHAIN, threads)
    starts = work.order
    assert starts.index("a") < starts.index("test_a") < starts.index("b") < starts.index("test_ab") < starts.index("c")
    assert {result.status for result in results.values()} == {"success"}


def test_a_failed_test_skips_what_reads_its_model() -> None:
    _, results = run(CHAIN, test_a="fail")
    skipped = {name for name, result in results.items() if result.status == "skipped"}
    assert skipped == {"b", "c", "test_ab"}
    assert results["b"].message == "because of test_a"


def test_a_test_of_two_models_gates_only_what_reads_both() -> None:
    _, results = run(CHAIN, test_ab="fail")
    assert (results["b"].status, results["c"].status) == ("success", "skipped")


def test_a_warning_skips_nothing() -> None:
    _, results = run(CHAIN, test_a="warn")
    assert "skipped" not in {result.status for result in results.values()}


def test_independent_branches_go_on_after_an_error() -> None:
    _, results = run(CHAIN, a="error")
    assert (results["aside"].status, results["c"].status, results["test_a"].status) == ("success", "skipped", "skipped")


def test_fail_fast_skips_all_that_has_not_started() -> None:
    _, results = run(CHAIN, fail_fast=True, a="error")
    assert {result.status for name, result in results.items() if name != "a"} <= {"skipped", "success"}
    assert results["test_a"].status == "skipped"
    assert "because of" in results["test_a"].message


def test_a_unit_test_runs_before_its_model_and_gates_it_alone() -> None:
    over = graph(a="", b="a", unit_b="b", aside="a")
    work, results = run(over)
    assert work.order.index("unit_b") < work.order.index("b")
    _, results = run(over, unit_b="fail")
    assert {name for name, result in results.items() if result.status == "skipped"} == {"b"}


def test_unit_tests_stand_before_their_models_whichever_are_selected() -> None:
    over = graph(a="", b="a", unit_b="b", unit_a="a")
    assert running_order(over, ["a", "b", "unit_a", "unit_b"]) == ["unit_a", "a", "unit_b", "b"]
    assert running_order(over, ["a", "unit_b"]) == ["unit_b", "a"]
