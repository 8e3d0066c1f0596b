"""The graph of ids gives what networkx gives for the same edges."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import networkx as nx
import pytest

from sqlmesh_like.plan.digraph import DiGraph


@pytest.mark.parametrize("seed", range(40))
def test_order_and_reach_are_those_of_networkx(seed: int) -> None:
    chance = Random(seed)
    names = [f"n{number}" for number in range(chance.randrange(1, 25))]
    shuffled = chance.sample(names, len(names))  # an edge goes forward in here, so there is no circle
    ours, theirs = DiGraph(), nx.DiGraph()
    for name in names:
        ours.add_node(name)
        theirs.add_node(name)
    for _ in range(chance.randrange(60)):
        start, end = sorted(chance.randrange(len(names)) for _ in range(2))
        if start != end:
            ours.add_edge(shuffled[start], shuffled[end])
            theirs.add_edge(shuffled[start], shuffled[end])
    expected = tuple(nx.lexicographical_topological_sort(theirs, key=lambda name: (name,)))
    assert ours.topological_order(lambda name: (name,)) == expected
    assert set(ours.edges) == set(theirs.edges)
    for name in names:
        assert ours.descendants(name) == nx.descendants(theirs, name)
        assert ours.ancestors(name) == nx.ancestors(theirs, name)
        for depth in range(4):
            near = set(nx.single_source_shortest_path_length(theirs, name, cutoff=depth)) - {name}
            assert ours.descendants(name, depth) == near
        assert set(ours.predecessors(name)) == set(theirs.predecessors(name))
        assert set(ours.successors(name)) == set(theirs.successors(name))


def test_what_lies_on_a_circle_or_behind_it_has_no_place_in_the_order() -> None:
    graph = DiGraph()
    for start, end in (("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("a", "e")):
        graph.add_edge(start, end)
    assert graph.topological_order(lambda name: (name,)) == ("a", "e")
    with pytest.raises(KeyError):
        graph.descendants("nowhere")


def test_the_command_line_imports_no_networkx() -> None:
    """It takes longer than many a project to read."""
    code = "import sys; import sqlmesh_like.artifacts.manifest; print('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
