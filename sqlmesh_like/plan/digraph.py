"""A directed graph of ids: neighbours, reach, order. Owns nothing else; networkx does it too but takes long to import.

Circles are reported by networkx: a project that has one is not read any further.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping


class DiGraph:
    """Nodes in the order in which they were added, each with those before and after it, once each."""

    def __init__(self) -> None:
        self._successors: dict[str, dict[str, None]] = {}
        self._predecessors: dict[str, dict[str, None]] = {}

    def add_node(self, node: str) -> None:
        self._successors.setdefault(node, {})
        self._predecessors.setdefault(node, {})

    def add_edge(self, start: str, end: str) -> None:
        """An edge; its ends become nodes where they are none yet."""
        self.add_node(start)
        self.add_node(end)
        self._successors[start][end] = None
        self._predecessors[end][start] = None

    @property
    def nodes(self) -> Collection[str]:
        return self._successors.keys()

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        return tuple((start, end) for start, ends in self._successors.items() for end in ends)

    def successors(self, node: str) -> Collection[str]:
        """Raises KeyError where there is no such node, as the others do."""
        return self._successors[node].keys()

    def predecessors(self, node: str) -> Collection[str]:
        return self._predecessors[node].keys()

    def descendants(self, node: str, depth: int | None = None) -> frozenset[str]:
        """What can be reached from a node by at most `depth` edges; the node is not among it."""
        return _reach(self._successors, node, depth)

    def ancestors(self, node: str, depth: int | None = None) -> frozenset[str]:
        return _reach(self._predecessors, node, depth)

    def topological_order(self, key: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
        """All nodes, each after its predecessors; of those that could come next the smallest by `key`.

        Nodes of a circle, and what comes after them, are left out.

        >>> graph = DiGraph()
        >>> graph.add_edge("b", "a"); graph.add_edge("b", "c"); graph.add_node("d")
        >>> graph.topological_order(lambda node: (node,))
        ('b', 'a', 'c', 'd')
        """
        waiting = {node: len(before) for node, before in self._predecessors.items()}
        ready = [(key(node), node) for node, count in waiting.items() if count == 0]
        heapq.heapify(ready)
        ordered: list[str] = []
        while ready:
            _, node = heapq.heappop(ready)
            ordered.append(node)
            for successor in self._successors[node]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    heapq.heappush(ready, (key(successor), successor))
        return tuple(ordered)


def _reach(neighbours: Mapping[str, Iterable[str]], start: str, depth: int | None) -> frozenset[str]:
    reached, level = {start}, list(neighbours[start])
    while level and (depth is None or depth > 0):
        fresh = [node for node in dict.fromkeys(level) if node not in reached]
        reached.update(fresh)
        level = [node for near in fresh for node in neighbours[near]]
        depth = None if depth is None else depth - 1
    return frozenset(reached) - {start}
