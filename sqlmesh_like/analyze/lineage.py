"""Column lineage. Owns where an output column comes from, and through which columns a query splits into partitions."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlmesh_like.analyze.relation import (
    Aggregate,
    Distinct,
    Filter,
    Named,
    Project,
    Relation,
    Scan,
    UnionAll,
    Windowed,
    columns,
)

Origins = Mapping[str, Mapping[str, str]]
"""Output column (lower case) → input id → the input's column whose value it is, unchanged."""


def split_columns(relation: Relation) -> Origins:
    """Columns c for which the query over the rows with c = v yields exactly the result rows with c = v.

    A filter or projection keeps the property for columns it copies; GROUP BY and DISTINCT for grouped ones; window
    functions for those in every PARTITION BY. What is not in the result is not proven.
    """
    match relation:
        case Scan():
            return {column.name.lower(): {relation.input_id: column.name} for column in relation.schema}
        case Filter() | Distinct():
            return split_columns(relation.child)
        case Project():
            return _copied(relation.items, split_columns(relation.child))
        case Windowed():
            below = split_columns(relation.child)
            common = [_bare(partition) for partition in relation.partitions]
            kept = {name: origin for name, origin in below.items() if all(name in names for names in common)}
            return _copied(relation.items, kept)
        case Aggregate():
            return _copied(relation.items, _copied(relation.keys, split_columns(relation.child)))
        case UnionAll():
            return _through_union(relation)


def _copied(items: tuple[Named, ...], below: Origins) -> Origins:
    return {
        item.name.lower(): below[item.expression.name.lower()]
        for item in items
        if isinstance(item.expression, exp.Column) and item.expression.name.lower() in below
    }


def _bare(expressions: tuple[exp.Expr, ...]) -> set[str]:
    return {expression.name.lower() for expression in expressions if isinstance(expression, exp.Column)}


def _through_union(union: UnionAll) -> Origins:
    merged: dict[str, dict[str, str]] = {}
    for position, column in enumerate(union.schema):
        origin: dict[str, str] = {}
        for branch in union.branches:
            found = split_columns(branch).get(columns(branch)[position].name.lower())
            if found is None or any(origin.get(input_id, name) != name for input_id, name in found.items()):
                break
            origin |= found
        else:
            merged[column.name.lower()] = origin
    return merged
