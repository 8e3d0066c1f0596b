"""Spark's types of the expressions that plans depend on, and what plans ask of a type.

None means "not proven", never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.spark_types.coercion import INTEGERS, VOID, decimal_of
from sqlmesh_like.analyze.spark_types.exactness import (
    DOUBLE_DIGITS,
    EXACT_KEYS,
    averages_doubles,
    is_exact_key,
    is_exact_number,
    is_group_key,
    is_one_key,
)
from sqlmesh_like.analyze.spark_types.function_types import avg_type, sum_type
from sqlmesh_like.analyze.spark_types.type_names import normalize

__all__ = ["DOUBLE_DIGITS", "EXACT_KEYS", "INTEGERS", "averages_doubles", "avg_type", "decimal_of", "infer",
           "is_exact_key", "is_exact_number", "is_group_key", "is_one_key", "normalize", "sum_type"]  # fmt: skip


def infer(expression: exp.Expr, known: Mapping[str, str | None]) -> str | None:
    """Spark type of an expression over columns whose types are `known` (by lower-case name); None if not proven.

    >>> import sqlglot
    >>> infer(sqlglot.parse_one("a * b"), {"a": "int", "b": "decimal(10,2)"})
    'decimal(21,2)'
    >>> [infer(sqlglot.parse_one(f"x {sign} n", dialect="spark"), {"x": "float", "n": "int"}) for sign in "+/"]
    ['float', 'double']
    """
    if isinstance(expression, exp.Column):  # the most frequent case
        return known.get(expression.name.lower())
    type_ = ExpressionTypes(lambda column: known.get(column.name.lower())).of(expression)
    return None if type_ is None or VOID in type_ else type_
