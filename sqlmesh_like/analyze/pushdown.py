"""Conditions of WHERE, pushed down to the joins they belong to. Owns this one rewrite of the algebra.

Joins written with commas have no conditions of their own, only one filter above them all. If a semi join is in between,
its keys would be looked up in the cross product of all tables. Only the position of a condition changes: rows and row
keys do not. Conditions that read the clock are not moved. Source: Spark's `PushPredicateThroughJoin`.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Filter,
    Join,
    NodeNumbers,
    Relation,
    children,
    columns,
    with_children,
)
from sqlmesh_like.analyze.binding.joining import conjuncts, make_join
from sqlmesh_like.analyze.expressions.clock import clock_calls


def push_down_filters(relation: Relation) -> Relation:
    """The relation with each filter pushed down its joins as far as is valid; shared nodes stay shared."""
    return _Rewrite().of(relation)


class _Rewrite:
    """Rewrites bottom up, each node once, so that a shared node stays one node and its delta is computed once."""

    def __init__(self) -> None:
        self._nodes = NodeNumbers()
        self._done: dict[int, Relation] = {}

    def of(self, relation: Relation) -> Relation:
        number = self._nodes.of(relation)
        if number not in self._done:
            self._done[number] = self._rewritten(relation)
        return self._done[number]

    def _rewritten(self, relation: Relation) -> Relation:
        below = tuple(self.of(child) for child in children(relation))
        if any(new is not old for new, old in zip(below, children(relation), strict=True)):
            relation = with_children(relation, below)
        if not isinstance(relation, Filter):
            return relation
        child, kept = relation.child, list[exp.Expr]()
        for part in conjuncts(relation.condition):
            sunk = _push_below(child, part)
            if sunk is None:
                kept.append(part)
            else:
                child = sunk
        if len(kept) == len(conjuncts(relation.condition)):
            return relation
        return Filter(child, exp.and_(*kept)) if kept else child


def _push_below(relation: Relation, part: exp.Expr) -> Relation | None:
    """The relation with the condition pushed below its top node; None if that is not valid.

    The side that an outer join fills with NULLs is not filtered early: rows that had a match would lose it.
    """
    if not isinstance(relation, Join) or clock_calls(part):
        return None
    if relation.kind != "right" and relation.kind != "full" and _reads_only(part, relation.left):
        return replace(relation, left=_push_condition(relation.left, part))
    if relation.kind in ("inner", "right") and _reads_only(part, relation.right):
        return replace(relation, right=_push_condition(relation.right, part))
    if relation.kind != "inner" or not part.find(exp.Column):
        return None
    condition = [relation.condition] if relation.condition is not None else []
    made = make_join(relation.left, relation.right, "inner", exp.and_(*condition, part))
    return replace(made, offset=relation.offset, keyword=relation.keyword) if isinstance(made, Join) else made


def _push_condition(relation: Relation, part: exp.Expr) -> Relation:
    sunk = _push_below(relation, part)
    if sunk is not None:
        return sunk
    if isinstance(relation, Filter) and not clock_calls(relation.condition):
        return Filter(relation.child, exp.and_(relation.condition, part))
    return Filter(relation, part)


def _reads_only(part: exp.Expr, side: Relation) -> bool:
    names = {column.name.lower() for column in part.find_all(exp.Column)}
    return bool(names) and names <= {column.name.lower() for column in columns(side)}
