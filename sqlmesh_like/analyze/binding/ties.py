"""Aggregates whose result depends on the order of rows. Owns the rewrite of each in which the row key breaks ties."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import operand

_LISTED: exp.Expr = sqlglot.parse_one(
    "transform(array_sort(collect_list(_sml_filled)), _sml_e -> _sml_e._sml_v)", dialect="spark"
)
_KNOWN = (
    exp.First, exp.FirstValue, exp.AnyValue, exp.Last, exp.LastValue, exp.ArgMax, exp.ArgMin, exp.ArrayAgg,
    exp.ArrayUniqueAgg,
)  # fmt: skip


def by_row_key(call: exp.Expr, key: exp.Expr) -> exp.Expr:
    """A copy of a call, possibly with FILTER, in which the row key breaks ties; other calls are copied unchanged.

    `max_by` and `min_by` compare the key after the value, `first` and `last` read the row with the smallest and the
    largest key; lists are ordered by key, sets by element. All skip NULL, so FILTER is folded into the arguments.

    >>> import sqlglot
    >>> by_row_key(sqlglot.parse_one("first(a)", dialect="spark"), exp.column("id")).sql("spark")
    'MIN_BY(a, id)'
    """
    function = core(call)
    if not is_decided(function):
        return call.copy()
    wanted = [call.expression.this] if isinstance(call, exp.Filter) else []
    value = function.this
    if call.find(exp.IgnoreNulls):
        wanted.append(_is_known(value))
    match function:
        case exp.ArgMax() | exp.ArgMin():
            compared = exp.Struct(expressions=[_field("_sml_o", function.expression), _field("_sml_k", key)])
            order = _where([*wanted, _is_known(function.expression)], compared)
            return type(function)(this=value.copy(), expression=order)
        case exp.Last() | exp.LastValue():
            return exp.ArgMax(this=value.copy(), expression=_where(wanted, key))
        case exp.ArrayAgg():
            pair = exp.Struct(expressions=[_field("_sml_k", key), _field("_sml_v", value)])
            return _with(_LISTED, _where([*wanted, _is_known(value)], pair))
        case exp.ArrayUniqueAgg():
            return exp.ArraySort(this=exp.ArrayUniqueAgg(this=_where(wanted, value)))
    return exp.ArgMin(this=value.copy(), expression=_where(wanted, key))


def is_decided(function: exp.Expr) -> bool:
    """Whether `by_row_key` rewrites a function: not with DISTINCT or ORDER BY, and not for the n largest."""
    return (
        isinstance(function, _KNOWN)
        and not isinstance(function.this, exp.Distinct | exp.Order | exp.Limit)
        and not function.args.get("count")
    )


def core(call: exp.Expr) -> exp.Expr:
    """The aggregate function inside FILTER and IGNORE NULLS."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return call


def _where(conditions: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    """The value where all conditions hold, else NULL."""
    return exp.Case().when(exp.and_(*conditions), value.copy()) if conditions else value.copy()


def _is_known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=operand(value), expression=exp.Null()))


def _field(name: str, value: exp.Expr) -> exp.Expr:
    return exp.PropertyEQ(this=exp.to_identifier(name), expression=value.copy())


def _with(template: exp.Expr, filled: exp.Expr) -> exp.Expr:
    def fill(node: exp.Expr) -> exp.Expr:
        return filled if isinstance(node, exp.Column) and node.name == "_sml_filled" else node

    return template.copy().transform(fill, copy=False)
