"""The first rows of each group: `row_number() over (partition by … order by …) <= k`. Owns which queries are this.

RANK and DENSE_RANK number rows that tie alike, so that more than k rows may be first. Of other filters above the window
and of several windows it is not known how many rows below a change can need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Filter, Named, Projection, Relation, Windowed, columns
from sqlmesh_like.analyze.binding.expression_copies import operand, replace_nodes
from sqlmesh_like.analyze.spark_types.exactness import is_group_key
from sqlmesh_like.names import Schema


@dataclass(frozen=True)
class GroupTop:
    """The rows of `child` whose number by the window is `count` at most; the order of ROW_NUMBER ends in the row key.

    `items` are the visible columns over those of the child, and over the window; `read` are the child's columns that
    they and the window read.
    """

    child: Relation
    window: exp.Window
    count: int
    items: tuple[Named, ...]
    read: Schema

    @property
    def has_ties(self) -> bool:
        """Whether rows that the order leaves tied have one number."""
        return not isinstance(self.window.this, exp.RowNumber)

    @property
    def keys(self) -> list[exp.Expr]:
        """What the rows of a group share."""
        keys: list[exp.Expr] = self.window.args["partition_by"]
        return keys


def group_top(relation: Relation) -> GroupTop | None:
    """What a query is if it is nothing but the first rows of each group, else None."""
    items: _Items = [(column.name, exp.column(column.name, quoted=True), column.type) for column in columns(relation)]
    conditions: list[exp.Expr] = []
    node = relation
    while isinstance(node, Filter | Projection):
        if isinstance(node, Filter):
            conditions.append(node.condition)
        else:
            items, conditions = _substitute_items(items, conditions, node.items)
        node = node.child
    if not isinstance(node, Windowed) or len(conditions) != 1:
        return None
    items, conditions = _substitute_items(items, conditions, node.items)
    limit = _limit(conditions[0].unnest())
    if limit is None:
        return None
    window, count = limit
    values = [window, *(value for _, value, _ in items)]
    if any(inner != window for value in values for inner in value.find_all(exp.Window)):
        return None
    used = {each.name.lower() for value in values for each in value.find_all(exp.Column)}
    read = tuple(column for column in columns(node.child) if column.name.lower() in used)
    if not all(is_group_key(column.type) for column in read):
        return None
    named = tuple(Named(name, value, type_) for name, value, type_ in items)
    return GroupTop(node.child, window, count, named, read)


_Items = list[tuple[str, exp.Expr, str | None]]


def _substitute_items(
    items: _Items, conditions: list[exp.Expr], below: tuple[Named, ...]
) -> tuple[_Items, list[exp.Expr]]:
    values = {item.name.lower(): item.expression for item in below}
    return (
        [(name, _over(value, values), type_) for name, value, type_ in items],
        [_over(condition, values) for condition in conditions],
    )


def _over(value: exp.Expr, below: Mapping[str, exp.Expr]) -> exp.Expr:
    if isinstance(value, exp.Column):
        return below[value.name.lower()].copy()
    return replace_nodes(
        value, lambda node: operand(below[node.name.lower()]) if isinstance(node, exp.Column) else node
    )


_MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.LTE: exp.GTE, exp.LT: exp.GT, exp.EQ: exp.EQ}


def _limit(condition: exp.Expr) -> tuple[exp.Window, int] | None:
    """The window and k of `row_number() over (partition by …) <= k`, or a rank, `< k + 1` or `= 1`, in either order."""
    for kind, mirrored in _MIRRORED.items():
        for window, bound in (
            (condition.this, condition.expression) if isinstance(condition, kind) else (None, None),
            (condition.expression, condition.this) if isinstance(condition, mirrored) else (None, None),
        ):
            window = window.unnest() if isinstance(window, exp.Expr) else None
            if not isinstance(window, exp.Window) or not _is_numbering(window):
                continue
            count = _whole_number(bound) - (kind is exp.LT)
            if count >= 1 and (kind is not exp.EQ or count == 1):
                return window, count
    return None


def _is_numbering(window: exp.Window) -> bool:
    has_order = window.args.get("partition_by") and window.args.get("order")
    return (
        isinstance(window.this, exp.RowNumber | exp.Rank | exp.DenseRank)
        and bool(has_order)
        and window.args.get("spec") is None
    )


def _whole_number(value: exp.Expr | None) -> int:
    """A number that is written out, else 0."""
    is_written = isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
    return int(value.name) if is_written and value is not None else 0
