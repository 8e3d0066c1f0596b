"""Queries whose result tells -0.0 from 0.0, such as `cast(d as string)`. Owns finding them.

GROUP BY makes both 0.0, so a netted change has the sign only where it is a key of its own (`rows.net`). Arithmetic and
comparisons do not tell the zeros apart: their results are equal. Source: Spark 3.5 `NormalizeFloatingNumbers`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlmesh_like.analyze.algebra.relation import Aggregate, Relation, UnionAll, children, columns, expressions, walk
from sqlmesh_like.analyze.spark_types.one_zero import FLOATING
from sqlmesh_like.names import Column

_CHOICES = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)
_BLIND = (
    *_CHOICES,
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Alias, exp.DataType,
    exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Is,
    exp.And, exp.Or, exp.Not, exp.Exists, exp.Cast, exp.TryCast,
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.ArgMax, exp.ArgMin, exp.AnyValue, exp.First,
    exp.Last, exp.FirstValue, exp.LastValue, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
    exp.Distinct, exp.Filter, exp.Where, exp.IgnoreNulls, exp.RespectNulls, exp.Window, exp.WindowSpec, exp.Order,
    exp.Ordered, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead,
)  # fmt: skip
"""Forms whose results over the two zeros are equal."""
_TEXT = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)


def tells_zeros_apart(relation: Relation) -> bool:
    """Whether an expression over floating-point numbers may show the sign of a zero."""
    return any(_node_tells(node) for node in walk(relation))


def _node_tells(node: Relation) -> bool:
    if isinstance(node, UnionAll):
        return any(
            own.type in FLOATING and merged.type not in FLOATING
            for branch in node.branches
            for own, merged in zip(columns(branch), node.schema, strict=True)
        )
    named = [column for child in children(node) for column in columns(child)]
    if isinstance(node, Aggregate):
        named += [Column(key.name, key.type) for key in node.keys]
        named += [Column(call.name, call.type) for call in node.calls]
    types = {column.name.lower(): column.type for column in named}
    return any(_tells(part, types) for expression in expressions(node) for part in expression.walk())


def _tells(part: exp.Expr, types: Mapping[str, str | None]) -> bool:
    read = [types.get(column.name.lower()) for column in part.find_all(exp.Column)]
    if not any(type_ is None or type_ in FLOATING for type_ in read):
        return False
    if isinstance(part, exp.Cast):
        return part.to.is_type(*_TEXT)
    if isinstance(part, _CHOICES):  # beside a text, the number becomes one
        return "string" in read or any(literal.is_string for literal in part.find_all(exp.Literal))
    return not isinstance(part, _BLIND)
