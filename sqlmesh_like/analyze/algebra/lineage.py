"""Column lineage. Owns where an output column comes from, and through which columns a query splits into partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Explode,
    Filter,
    Join,
    Named,
    OneRow,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    columns,
    inputs,
)

Origins = Mapping[str, Mapping[str, str]]
"""Output column (lower case) → input id → the input's column whose value it is, unchanged."""


def split_columns(relation: Relation) -> Origins:
    """Columns c for which the query over the rows with c = v yields exactly the result rows with c = v.

    A filter, explode or projection keeps the property for columns it copies; GROUP BY and DISTINCT for grouped ones;
    window functions for those in every PARTITION BY. For columns that are not returned it is not proven.
    """
    match relation:
        case Scan():
            return {column.name.lower(): {relation.input_id: column.name} for column in relation.schema}
        case Filter() | Distinct() | Explode():
            return split_columns(relation.child)
        case Projection():
            return _passthrough_origins(relation.items, split_columns(relation.child))
        case Windowed():
            below = split_columns(relation.child)
            common = {key.name.lower() for key in window_keys(relation) if isinstance(key, exp.Column)}
            return _passthrough_origins(
                relation.items, {name: origin for name, origin in below.items() if name in common}
            )
        case Join():
            return _through_join(relation)
        case Aggregate():
            return _passthrough_origins(
                relation.items, _passthrough_origins(relation.keys, split_columns(relation.child))
            )
        case UnionAll():
            return _through_union(relation)
        case OneRow() | TopK() | ScalarValue():
            return {}


def _passthrough_origins(items: tuple[Named, ...], below: Origins) -> Origins:
    return {
        item.name.lower(): below[item.expression.name.lower()]
        for item in items
        if isinstance(item.expression, exp.Column) and item.expression.name.lower() in below
    }


def window_keys(windowed: Windowed) -> list[exp.Expr]:
    """Expressions in the PARTITION BY of every window function: rows of one window share their values."""
    first, *others = windowed.partitions
    # Not `==`, which ignores the case of some names in a tree.
    return [key for key in first if all(any(repr(key) == repr(other) for other in part) for part in others)]


def is_one_group(relation: Relation) -> bool:
    """Whether any row below a node can decide about all of its rows."""
    match relation:
        case Windowed():
            return not window_keys(relation)
        case Aggregate():
            return not relation.keys
        case Join():
            return relation.kind != "inner" and not relation.pairs
    return isinstance(relation, TopK | ScalarValue)


def _through_join(join: Join) -> Origins:
    """A column splits its own side and, where the condition makes it equal to one there, the other side.

    An outer join keeps this for columns of its preserved side only. An input that both sides read is restricted on
    both, so both must split it by the same column.
    """
    left, right = split_columns(join.left), split_columns(join.right)
    shared = set(inputs(join.left)) & set(inputs(join.right))
    origins: dict[str, Mapping[str, str]] = {}
    if join.kind not in ("right", "full"):
        origins |= _across(left, right, [(pair.left, pair.right) for pair in join.pairs], shared)
    if join.kind in ("inner", "right"):
        origins |= _across(right, left, [(pair.right, pair.left) for pair in join.pairs], shared)
    return origins


def _across(
    own: Origins, other: Origins, pairs: list[tuple[exp.Expr, exp.Expr]], shared: set[str]
) -> dict[str, Mapping[str, str]]:
    origins: dict[str, Mapping[str, str]] = {}
    for name, origin in own.items():
        partner: dict[str, str] = {}
        for mine, theirs in pairs:
            if isinstance(mine, exp.Column) and mine.name.lower() == name and isinstance(theirs, exp.Column):
                partner |= other.get(theirs.name.lower(), {})
        both = {**partner, **origin}
        origins[name] = {i: c for i, c in both.items() if i not in shared or origin.get(i) == partner.get(i)}
    return origins


def _through_union(union: UnionAll) -> Origins:
    """By position; an input counts if every branch that reads it splits it by the same column."""
    read = [set(inputs(branch)) for branch in union.branches]
    splits = [split_columns(branch) for branch in union.branches]
    merged: dict[str, Mapping[str, str]] = {}
    for position, column in enumerate(union.schema):
        names = [columns(branch)[position].name.lower() for branch in union.branches]
        if all(name in split for name, split in zip(names, splits, strict=True)):
            origins = [split[name] for name, split in zip(names, splits, strict=True)]
            merged[column.name.lower()] = {i: c for o in origins for i, c in o.items() if _agree(i, origins, read)}
    return merged


def _agree(input_id: str, origins: list[Mapping[str, str]], read: list[set[str]]) -> bool:
    names = {origin.get(input_id) for origin, ids in zip(origins, read, strict=True) if input_id in ids}
    return len(names) == 1 and None not in names


def passthrough_columns(items: Sequence[Named]) -> dict[str, str]:
    """For each column below that a query returns unchanged (lower case) the first column that holds it."""
    return {
        item.expression.name.lower(): item.name for item in reversed(items) if isinstance(item.expression, exp.Column)
    }
