"""Source positions of a relation from another text. Owns moving those of an inlined view to where the view is read.

An offset is valid in one text only: those of a view's query would point anywhere in the model that reads it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import NodeNumbers, Relation
from sqlmesh_like.names import Column

_Part = TypeVar("_Part")


def relocate_positions(relation: Relation, offset: int | None) -> Relation:
    """The relation with every source position set to `offset`, where it is read; shared nodes stay shared."""
    return _Move(offset).of(relation)


class _Move:
    """Rewrites each part once, so that a shared node stays one node and its delta is computed once."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset
        self._parts = NodeNumbers()
        self._done: dict[int, object] = {}

    def of(self, part: _Part) -> _Part:
        if isinstance(part, Column) or not (isinstance(part, exp.Expr | tuple) or is_dataclass(part)):
            return part
        number = self._parts.of(part)
        if number not in self._done:
            self._done[number] = self._move_part(part)
        return self._done[number]  # type: ignore[return-value]

    def _move_part(self, part: object) -> object:
        """The part with its positions moved; a part without any is returned itself, as most are generated names."""
        if isinstance(part, exp.Expr):
            return self._expression(part)
        if isinstance(part, tuple):
            moved = tuple([self.of(one) for one in part])
            return moved if any(new is not old for new, old in zip(moved, part, strict=True)) else part
        assert is_dataclass(part) and not isinstance(part, type)
        before = {field.name: getattr(part, field.name) for field in fields(part)}
        after: dict[str, Any] = {name: self.of(value) for name, value in before.items()}
        after |= {"offset": self._offset} if before.get("offset") is not None else {}
        after |= {"keyword": ""} if "keyword" in before else {}
        changed = {name: value for name, value in after.items() if value is not before[name]}
        return replace(part, **changed) if changed else part

    def _expression(self, expression: exp.Expr) -> exp.Expr:
        if all(node.meta_get("start") is None for node in expression.walk()):
            return expression
        copy = expression.copy()
        for node in copy.walk():
            if node.meta.pop("start", None) is not None and self._offset is not None:
                node.meta["start"] = self._offset
        return copy
