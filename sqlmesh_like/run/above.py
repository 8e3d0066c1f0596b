"""Who reads whom, at any distance, for whole graphs: sets of nodes are bits of a number, which one operation meets.

For one node `Graph.ancestors` walks; for all nodes of a project such walks, and the sets they return, grow with the
square of its size: ten thousand models that read one another have tens of millions of pairs, and as bits 12 MB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from sqlmesh_like.plan.graph import Graph

Members = int
"""A set of nodes: bit `n` is the node at position `n` of the order, in which inputs stand before their readers."""


class Above:
    """The nodes of a graph but its tests, which nothing reads."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        tests = ("test", "unit_test")
        self._order = [each for each in graph.order() if graph.nodes[each].resource_type not in tests]
        self._position = {unique_id: position for position, unique_id in enumerate(self._order)}
        self._above: list[Members] = []
        for unique_id in self._order:
            self._above.append(self._with_above(graph.parents(unique_id)))

    def members(self, unique_ids: Iterable[str]) -> Members:
        together = 0
        for unique_id in unique_ids:
            together |= 1 << self._position[unique_id]
        return together

    def nearest(self, unique_id: str, among: Members) -> Iterator[str]:
        """Of these nodes those that it reads, directly or not, and that no other of them reads on the way to it."""
        read = self._with_above(self._graph.parents(unique_id)) & among
        while read:
            last = read.bit_length() - 1
            yield self._order[last]
            read &= ~(self._above[last] | 1 << last)

    def first_readers(self, unique_ids: Iterable[str], among: Members) -> Iterator[str]:
        """Of these nodes those that read all the given ones, directly or not, and none that does so before; none
        where none are given."""
        readers = 0
        for number, unique_id in enumerate(unique_ids):
            below = self._below[self._position[unique_id]]
            readers = readers & below if number else below
        readers &= among
        while readers:
            first = (readers & -readers).bit_length() - 1
            yield self._order[first]
            readers &= ~(self._below[first] | 1 << first)

    @cached_property
    def _below(self) -> list[Members]:
        below = [0] * len(self._order)
        for position in reversed(range(len(self._order))):
            for reader in self._graph.children(self._order[position]):
                if (there := self._position.get(reader)) is not None:
                    below[position] |= below[there] | 1 << there
        return below

    def _with_above(self, unique_ids: Iterable[str]) -> Members:
        together = 0
        for unique_id in unique_ids:
            position = self._position[unique_id]
            together |= self._above[position] | 1 << position
        return together
