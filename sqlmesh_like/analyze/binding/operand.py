"""Expressions as operands. Owns the parentheses that a tree does not need and its text does."""

from __future__ import annotations

from sqlglot import exp


def operand(expression: exp.Expr) -> exp.Expr:
    """A copy that can be written beside any operator: `a <=> b` beside `=` would be read as another tree.

    >>> import sqlglot
    >>> [operand(sqlglot.parse_one(sql, dialect="spark")).sql("spark") for sql in ("a", "f(a)", "a <=> b", "not a")]
    ['a', 'F(a)', '(a IS NOT DISTINCT FROM b)', '(NOT a)']
    """
    is_open = isinstance(expression, exp.Binary | exp.Between | exp.In | exp.Not | exp.Neg)
    return exp.Paren(this=expression.copy()) if is_open else expression.copy()
