"""The keys that a change affects, before and after. Owns their step, and the rows and partitions that follow from it.

A key decides which rows belong together: in a group, in a window, by the equalities of a join, in a partition of the
target. Keys are taken from before and after images alike: a row that moves from one key to another affects both.
Groups, windows, joins and whole partitions all use this module, because a missing key is a wrong row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqlmesh_like.analyze.algebra.lineage import window_keys
from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Join,
    Relation,
    ScalarValue,
    TopK,
    Windowed,
    columns,
)
from sqlmesh_like.delta.keys import column


def key_columns(count: int) -> list[str]:
    """Columns of a step of keys: `_sml_p0`, `_sml_p1`, …"""
    return [f"_sml_p{position}" for position in range(count)]


def keys_of(expressions: Sequence[exp.Expr], changes: Iterable[str | exp.Expr]) -> exp.Query:
    """Distinct values of expressions over the rows of these steps or FROM items.

    Without expressions: one row if there are any rows.
    """
    return affected_keys([(expressions, change) for change in changes])


def affected_keys(sides: Iterable[tuple[Sequence[exp.Expr], str | exp.Expr]]) -> exp.Query:
    """Distinct keys of several changes, each by its own expressions, such as both sides of a join or all inputs."""
    selects: list[exp.Query] = []
    for expressions, change in sides:
        names = key_columns(len(expressions))
        items = [exp.alias_(e.copy(), name, quoted=True) for e, name in zip(expressions, names, strict=True)]
        shown = items or [exp.Literal.number(1).as_("_sml_any")]
        selects.append(exp.select(*shown).distinct().from_(change))
    query = selects[0]
    for further in selects[1:]:
        query = exp.union(query, further, distinct=True)
    return query


def sides_of(source: Relation) -> list[tuple[Relation, list[exp.Expr]]]:
    """Each child with the expressions over it that are the node's keys, in the same order for every child."""
    match source:
        case Join():
            return [(source.left, [p.left for p in source.pairs]), (source.right, [p.right for p in source.pairs])]
        case Aggregate():
            return [(source.child, [named.expression for named in source.keys])]
        case Distinct():
            return [(source.child, [column(c.name) for c in columns(source)])]
        case Windowed():
            return [(source.child, window_keys(source))]
        case ScalarValue() | TopK():
            return [(source.child, [])]
    raise AssertionError(f"{type(source).__name__} is linear")


def visible_keys(source: Aggregate | Distinct, step_columns: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Visible columns of a grouped table that are its keys, each with the step's column that holds this key."""
    if isinstance(source, Distinct):
        return tuple((c.name, name) for c, name in zip(columns(source), step_columns, strict=True))
    keys = {named.name: name for named, name in zip(source.keys, step_columns, strict=True)}
    return tuple(
        (item.name, keys[item.expression.name])
        for item in source.items
        if isinstance(item.expression, exp.Column) and item.expression.name in keys
    )
