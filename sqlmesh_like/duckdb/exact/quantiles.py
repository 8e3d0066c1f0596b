"""PERCENTILE, MEDIAN, PERCENTILE_CONT and PERCENTILE_DISC: over which types they are proven, and how they are written.

Spark sorts the values of a group, and interpolates between the two at the ends of the position (n - 1) q in doubles: so
does the macro `_sml_percentile`. PERCENTILE_DISC takes the value at the place n q, rounded up. Values must be exact
doubles, so that those of one double are one value.
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.duckdb.exact.form import Form
from sqlmesh_like.duckdb.exact.unproven import Unproven, require_only
from sqlmesh_like.duckdb.exact.values import Types, cast_of, is_exact_double, only_where

_CONTINUOUS, _DISCRETE = "_sml_percentile", "_sml_percentile_disc"
"""Macros, of sorted values and a share."""


def _quantile(node: exp.Quantile, types: Types) -> str:
    require_only(node, "this", "quantile")
    return _replace(node, node.args["quantile"], types)


def _median(node: exp.Median, types: Types) -> str:
    require_only(node, "this")
    return _replace(node, exp.Literal.number("0.5"), types)


def _continuous(node: exp.PercentileCont, types: Types) -> str:
    require_only(node, "this", "expression", "desc")
    return _replace(node, node.expression, types, is_descending=bool(node.args.get("desc")))


def _discrete(node: exp.PercentileDisc, types: Types) -> str:
    """The first value that so large a share of the rows does not exceed."""
    require_only(node, "this", "expression", "desc")
    return _replace(node, node.expression, types, is_descending=bool(node.args.get("desc")), macro=_DISCRETE)


def _replace(
    node: exp.Expr, quantile: exp.Expr, types: Types, *, is_descending: bool = False, macro: str = _CONTINUOUS
) -> str:
    if isinstance(node.parent, exp.Filter | exp.Window):
        raise Unproven(f"{node.key.upper()} with FILTER or OVER")
    if isinstance(node.this, exp.Distinct):
        raise Unproven(f"{node.key.upper()} of distinct values")
    given = types.of(node.this)
    if not is_exact_double(given):
        raise Unproven(f"{node.key.upper()} of {given}")
    value = cast_of(node.this.copy(), "double")
    if given == "bigint":
        is_exact = exp.LT(this=exp.Abs(this=node.this.copy()), expression=exp.Literal.number(2**53))
        value = only_where(is_exact, node.this, value, "double")
    listed = exp.ArrayAgg(this=value, nulls_excluded=True)
    order = exp.Literal.string("DESC" if is_descending else "ASC")
    values = exp.Anonymous(this="list_sort", expressions=[listed, order])
    if isinstance(quantile, exp.Array):
        made = [_percentile(values, each, macro) for each in quantile.expressions]
        known = exp.Not(this=exp.Is(this=values.copy(), expression=exp.null()))
        node.replace(exp.Paren(this=exp.Case().when(known, cast_of(exp.Array(expressions=made), "array<double>"))))
        return "array<double>"
    node.replace(_percentile(values, quantile, macro))
    return "double"


def _percentile(values: exp.Expr, quantile: exp.Expr, macro: str) -> exp.Expr:
    if not isinstance(quantile, exp.Literal) or not quantile.name.replace(".", "", 1).isdigit():
        raise Unproven("a percentage that is not written as a number")
    share = cast_of(exp.Literal.string(quantile.name), "double")
    return exp.Anonymous(this=macro, expressions=[values.copy(), share])


FORMS: dict[type[exp.Expr], Form] = {
    kind: Form(proof, is_listed=False, why="it is listed as an aggregate, with a guard on its types")
    for kind, proof in (
        (exp.Quantile, _quantile),
        (exp.Median, _median),
        (exp.PercentileCont, _continuous),
        (exp.PercentileDisc, _discrete),
    )
}
