"""Places of a relation that another text made. Owns moving those of an inlined view to where the view is read.

An offset counts in one text only: those of a view's query would point anywhere in the model that reads it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from sqlglot import exp

from sqlmesh_like.analyze.relation import Relation

_Part = TypeVar("_Part")


def relocated(relation: Relation, offset: int | None) -> Relation:
    """The relation with every place at `offset` of the text that reads it; what two nodes share stays shared."""
    return _Move(offset).of(relation)


class _Move:
    """Remembers by identity, for the delta of a node that is read twice is made once."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset
        self._done: dict[int, tuple[object, object]] = {}

    def of(self, part: _Part) -> _Part:
        if id(part) not in self._done:
            # The original is kept, for an id is only unique among the living.
            self._done[id(part)] = (part, self._moved(part))
        return self._done[id(part)][1]  # type: ignore[return-value]

    def _moved(self, part: object) -> object:
        if isinstance(part, exp.Expr):
            return self._expression(part.copy())
        if isinstance(part, tuple):
            return tuple(self.of(one) for one in part)
        if not is_dataclass(part) or isinstance(part, type):
            return part
        changed: dict[str, Any] = {field.name: self.of(getattr(part, field.name)) for field in fields(part)}
        changed |= {"offset": self._offset} if changed.get("offset") is not None else {}
        return replace(part, **changed | ({"keyword": ""} if "keyword" in changed else {}))

    def _expression(self, copy: exp.Expr) -> exp.Expr:
        for node in copy.walk():
            if node.meta.pop("start", None) is not None and self._offset is not None:
                node.meta["start"] = self._offset
        return copy
