"""What can change in a run, and what is small. Owns the facts that a program is made for."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.analyze.algebra.relation import Filter, Relation, Scan, walk
from sqlmesh_like.analyze.expressions.clock import clock_calls


@dataclass(frozen=True)
class Moves:
    """Inputs (by id) that have moved since the last run, None for all; `small` ones that have not are read whole."""

    inputs: frozenset[str] | None = None
    small: frozenset[str] = frozenset()

    def can_change(self, relation: Relation) -> bool:
        """Whether rows of a relation may enter or leave: by an input that moved, or a filter by the clock."""
        return any(self._is_source(node) for node in walk(relation))

    def _is_source(self, node: Relation) -> bool:
        if isinstance(node, Scan):
            return self.inputs is None or node.input_id in self.inputs
        return isinstance(node, Filter) and bool(clock_calls(node.condition))


ALL = Moves()
"""Every input has moved."""
