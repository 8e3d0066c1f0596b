"""Which input columns each output column is computed from. Owns the lineage of a single query in the algebra.

`text_lineage` traces the others; `plan.lineage` goes through models up to the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Named,
    Projection,
    Relation,
    ScalarValue,
    Scan,
    TopK,
    UnionAll,
    Windowed,
    children,
    columns,
)
from sqlmesh_like.analyze.spark_types.one_zero import as_written

How = Literal["copied", "computed", "aggregated"]
InfluenceRole = Literal["filters", "joins", "groups"]
_ORDER: tuple[How, ...] = ("copied", "computed", "aggregated")


@dataclass(frozen=True, order=True)
class ColumnOrigin:
    """A column of an input."""

    input_id: str
    column: str


Influences = Mapping[ColumnOrigin, tuple[InfluenceRole, ...]]
"""Columns that decide which rows there are, each with all of its roles."""


@dataclass(frozen=True)
class ColumnLineage:
    """One output column: how each origin enters its value, and which columns decide the rows behind it.

    `influences` is empty for queries outside the algebra, for which only values are traced. `is_complete` is False if
    there are further origins that the text alone does not show.
    """

    name: str
    type: str | None
    origins: Mapping[ColumnOrigin, How]
    influences: Influences
    is_complete: bool = True


_Values = dict[str, dict[ColumnOrigin, How]]


@dataclass(frozen=True)
class _Traced:
    """Origins by output column (lower case), and what decides the relation's rows."""

    values: _Values
    influences: Influences


def trace(relation: Relation) -> tuple[ColumnLineage, ...]:
    """Lineage of all output columns in their order."""
    traced = _trace(relation)
    return tuple(
        ColumnLineage(column.name, column.type, traced.values[column.name.lower()], traced.influences)
        for column in columns(relation)
    )


def _trace(relation: Relation) -> _Traced:
    match relation:
        case Scan():
            return _Traced(
                {c.name.lower(): {ColumnOrigin(relation.input_id, c.name): "copied"} for c in relation.schema}, {}
            )  # fmt: skip
        case Filter():
            below = _trace(relation.child)
            return _Traced(below.values, _add_influences(below, below.values, [relation.condition], "filters"))
        case Distinct() | ScalarValue():
            return _trace(relation.child)
        case Projection() | Windowed():
            below = _trace(relation.child)
            return _Traced(_items(relation.items, below.values), below.influences)
        case TopK():
            below = _trace(relation.child)
            order = [exp.column(term.column, quoted=True) for term in relation.order]
            return _Traced(below.values, _add_influences(below, below.values, order, "filters"))
        case Aggregate():
            return _aggregate(relation)
        case Join():
            return _join(relation)
        case UnionAll():
            return _union(relation)
        case _:
            return _trace_added_columns(relation)


def _aggregate(relation: Aggregate) -> _Traced:
    below = _trace(relation.child)
    keys = [key.expression for key in relation.keys]
    values = _items(relation.keys, below.values)
    for call in relation.calls:
        read = {origin for name in _names(call.call) for origin in below.values.get(name, {})}
        values[call.name.lower()] = dict.fromkeys(sorted(read), "aggregated")
    return _Traced(_items(relation.items, values), _add_influences(below, below.values, keys, "groups"))


def _join(join: Join) -> _Traced:
    left, right = _trace(join.left), _trace(join.right)
    both = {**left.values, **right.values}
    below = _Traced(both, all_roles(left.influences, right.influences))
    condition = [join.condition] if join.condition is not None else []
    shown = left.values if join.kind in ("semi", "anti") else both
    return _Traced(shown, _add_influences(below, both, condition, "joins"))


def _union(union: UnionAll) -> _Traced:
    branches = [_trace(branch) for branch in union.branches]
    values: _Values = {}
    for position, column in enumerate(union.schema):
        names = [columns(branch)[position].name.lower() for branch in union.branches]
        values[column.name.lower()] = _merge_origins(
            branch.values[name] for branch, name in zip(branches, names, strict=True)
        )  # fmt: skip
    return _Traced(values, all_roles(*(branch.influences for branch in branches)))


def _trace_added_columns(relation: Relation) -> _Traced:
    """A node that adds columns to those of its children; each added column is traced to all of theirs."""
    below = [_trace(child) for child in children(relation)]
    known = {name: origins for child in below for name, origins in child.values.items()}
    everything = dict.fromkeys((origin for origins in known.values() for origin in origins), "computed")
    values: _Values = {c.name.lower(): known.get(c.name.lower(), dict(everything)) for c in columns(relation)}  # type: ignore[arg-type]
    return _Traced(values, all_roles(*(child.influences for child in below)))


def _items(items: Iterable[Named], below: _Values) -> _Values:
    return {item.name.lower(): _origins(as_written(item.expression), below) for item in items}


def _origins(expression: exp.Expr, below: _Values) -> dict[ColumnOrigin, How]:
    if isinstance(expression, exp.Column):
        return dict(below.get(expression.name.lower(), {}))
    return _merge_origins(
        {
            origin: stronger(how, "aggregated" if column.find_ancestor(exp.AggFunc) else "computed")
            for origin, how in below.get(column.name.lower(), {}).items()
        }
        for column in expression.find_all(exp.Column)
    )


def _merge_origins(parts: Iterable[Mapping[ColumnOrigin, How]]) -> dict[ColumnOrigin, How]:
    merged: dict[ColumnOrigin, How] = {}
    for part in parts:
        for origin, how in part.items():
            merged[origin] = stronger(merged.get(origin, how), how)
    return merged


def stronger(one: How, other: How) -> How:
    """The combined effect of two steps on a value: an aggregate of computed values is aggregated."""
    return max(one, other, key=_ORDER.index)


def _add_influences(below: _Traced, values: _Values, conditions: Iterable[exp.Expr], role: InfluenceRole) -> Influences:
    read = {origin for condition in conditions for name in _names(condition) for origin in values.get(name, {})}
    return all_roles(dict.fromkeys(sorted(read), (role,)), below.influences)


def all_roles(*parts: Influences) -> Influences:
    """The influences of several parts of a query together."""
    together: dict[ColumnOrigin, tuple[InfluenceRole, ...]] = {}
    for part in parts:
        for origin, roles in part.items():
            together[origin] = tuple(dict.fromkeys((*together.get(origin, ()), *roles)))
    return together


def _names(expression: exp.Expr) -> set[str]:
    return {column.name.lower() for column in expression.find_all(exp.Column)}
