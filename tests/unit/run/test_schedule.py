"""Order, skipping and gates of a run, with work that does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import UTC, datetime
from functools import cache
from random import Random

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


def test_what_is_skipped_names_what_failed_and_not_what_was_skipped_between() -> None:
    _, results = run(CHAIN, a="error")
    assert {results[name].message for name in ("b", "c", "test_a", "test_ab")} == {"because of a"}


@pytest.mark.parametrize("seed", range(40))
def test_a_node_waits_for_what_it_reads_at_any_distance_and_for_the_tests_of_that(seed: int) -> None:
    """Each need is named where it is met last, so that all of them follow; the rule itself is dbt's."""
    chance = Random(seed)
    names = [f"m{number:02}" for number in range(14)]
    reads = {
        name: chance.sample(names[:number], chance.randint(0, min(3, number))) for number, name in enumerate(names)
    }
    reads |= {f"test_{number}": chance.sample(names, chance.randint(0, 3)) for number in range(6)}
    reads |= {f"unit_{name}": [name] for name in chance.sample(names, 3)}
    over = graph(**{name: " ".join(each) for name, each in reads.items()})
    selected = running_order(over, chance.sample(list(reads), chance.randint(1, len(reads))))
    tests = [name for name in selected if _type(name) == "test" and reads[name]]
    units = {name: reads[name] for name in selected if _type(name) == "unit_test"}
    rule = {
        name: set[str]()
        if name in units
        else over.ancestors(name).intersection(selected)
        | {test for test in tests if {*reads[test]} <= over.ancestors(name) and _type(name) == "model"}
        | {unit for unit, models in units.items() if name in models}
        for name in selected
    }
    needs = needs_of(over, selected)
    assert _all_needs(needs) == _all_needs(rule)
    assert sum(map(len, needs.values())) <= sum(map(len, rule.values()))


def _all_needs(needs: Mapping[str, Set[str]]) -> dict[str, frozenset[str]]:
    """Those of the needs, too."""

    @cache
    def of(name: str) -> frozenset[str]:
        return frozenset(needs[name]).union(*map(of, needs[name]))

    return {name: of(name) for name in needs}


def test_many_nodes_in_a_row_are_skipped_with_the_first() -> None:
    chain = graph(**{f"m{number:04}": f"m{number - 1:04}" if number else "" for number in range(2_000)})
    _, results = run(chain, m0000="error")
    assert sum(result.status == "skipped" for result in results.values()) == 1_999
