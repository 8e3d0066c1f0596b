"""By which columns rows of an input are looked up for a step. Owns this one rule, which plans and programs follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmesh_like.delta.program import Prune
from sqlmesh_like.names import Schema

_COMPARABLE = ("tinyint", "smallint", "int", "bigint", "string", "date", "timestamp", "boolean")

LookupPairs = tuple[Sequence[tuple[str, str]], str]
"""Pairs of columns of an input and of a step, and the step."""


def lookup_pairs(
    prunes: Sequence[Prune], name: str, schema: Schema, steps: Mapping[str, Schema] | None
) -> LookupPairs | None:
    """The columns by which rows of an input are looked up, and the step; None if no step's values bound them.

    `steps`: those that there are, with the types of their columns; None: before the program runs, they are taken for
    those of the input.
    """
    types = {column.name.lower(): (column.name, column.type) for column in schema}
    for prune in prunes:
        pairs = prune.columns.get(name, ())
        spelt = [(types[own.lower()][0], theirs) for own, theirs in pairs if own.lower() in types]
        same = steps is None or _are_same(spelt, types, {c.name.lower(): c.type for c in steps.get(prune.step, ())})
        plain = [types[own.lower()][1] in _COMPARABLE for own, _ in spelt]
        if spelt and len(spelt) == len(pairs) and same and all(plain):
            return spelt, prune.step
    return None


def _are_same(
    pairs: Sequence[tuple[str, str]], types: Mapping[str, tuple[str, str | None]], known: Mapping[str, str | None]
) -> bool:
    return all(types[own.lower()][1] == known.get(theirs.lower()) for own, theirs in pairs)
