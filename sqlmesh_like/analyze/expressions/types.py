"""Spark's types of the expressions that plans depend on, and what plans ask of a type.

None means "not proven", never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sqlmesh_like.analyze.expressions.coercion import INTEGERS, VOID, decimal_of, is_decimal
from sqlmesh_like.analyze.expressions.expression_types import ExpressionTypes
from sqlmesh_like.analyze.expressions.function_types import avg_type, sum_type
from sqlmesh_like.analyze.expressions.type_names import normalize

__all__ = ["DOUBLE_DIGITS", "EXACT_KEYS", "INTEGERS", "averages_doubles", "avg_type", "decimal_of", "infer",
           "is_exact_key", "is_exact_number", "is_one_key", "normalize", "sum_type"]  # fmt: skip

DOUBLE_DIGITS = 15
"""Digits of a decimal that a double always holds."""
EXACT_KEYS = (*INTEGERS, "string", "date", "timestamp", "boolean")


def is_exact_number(type_: str | None) -> bool:
    return decimal_of(type_) is not None


def is_exact_key(type_: str | None) -> bool:
    """Whether equal values of this type have one text form: no floats, no binary, nothing nested."""
    return type_ in EXACT_KEYS or is_decimal(type_)


def is_one_key(left: str | None, right: str | None) -> bool:
    """Whether equal values of two types are one key: not text and a number, nor two different decimal types.

    >>> is_one_key("int", "bigint"), is_one_key("int", "string"), is_one_key("double", "double")
    (True, False, False)
    """
    return is_exact_key(left) and (left == right or (left in INTEGERS and right in INTEGERS))


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


def averages_doubles(argument: str | None) -> bool:
    """Whether Spark computes AVG of these decimals from doubles (its optimizer's rule `DecimalAggregates`).

    >>> averages_doubles("decimal(11,2)"), averages_doubles("decimal(12,2)"), averages_doubles("int")
    (True, False, False)
    """
    decimal = decimal_of(argument) if is_decimal(argument) else None
    return decimal is not None and decimal[0] + 4 <= DOUBLE_DIGITS
