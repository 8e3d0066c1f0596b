"""Floating values as group keys: Spark groups -0.0 with 0.0 and shows 0.0, and NaN is one value.

Source: Spark 3.5 `NormalizeFloatingNumbers`. DuckDB shows whichever zero comes first, so the key is made one here.
"""

from __future__ import annotations

from sqlglot import exp

FLOATING = ("double", "float")
_WRITTEN = "one_zero"


def with_one_zero(expression: exp.Expr, type_: str | None) -> exp.Expr:
    """The expression with 0.0 for -0.0 if its type is a floating one.

    >>> import sqlglot
    >>> with_one_zero(sqlglot.parse_one("x"), "double").sql("spark")
    'CASE WHEN x = 0 THEN CAST(0 AS DOUBLE) ELSE x END'
    """
    if type_ not in FLOATING:
        return expression
    zero = exp.cast(exp.Literal.number(0), type_, dialect="spark")
    is_zero = exp.EQ(this=exp.Paren(this=expression.copy()), expression=exp.Literal.number(0))
    if isinstance(expression, exp.Column):
        is_zero.set("this", expression.copy())
    key = exp.Case().when(is_zero, zero).else_(expression.copy())
    key.meta[_WRITTEN] = True
    return key


def as_written(expression: exp.Expr) -> exp.Expr:
    """The expression for which `with_one_zero` was asked."""
    return expression.args["default"] if expression.meta.get(_WRITTEN) else expression
