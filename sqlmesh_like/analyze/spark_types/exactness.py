"""Which values are exact: equal ones have one text, sums of them are the same in any order. Pure, by type alone."""

from __future__ import annotations

from sqlmesh_like.analyze.spark_types.coercion import INTEGERS, decimal_of, is_decimal

DOUBLE_DIGITS = 15
"""Digits of a decimal that a double always holds."""
EXACT_KEYS = (*INTEGERS, "string", "date", "timestamp", "boolean")


def is_exact_number(type_: str | None) -> bool:
    return decimal_of(type_) is not None


def is_exact_key(type_: str | None) -> bool:
    """Whether equal values of this type have one text form: no floats, no binary, nothing nested."""
    return type_ in EXACT_KEYS or is_decimal(type_)


def is_group_key(type_: str | None) -> bool:
    """Whether rows can be grouped by values of this type: each has one text, doubles by their bits, zeros made one."""
    return is_exact_key(type_) or type_ in ("double", "float")


def is_one_key(left: str | None, right: str | None) -> bool:
    """Whether equal values of two types are one key: not text and a number, nor two different decimal types.

    >>> is_one_key("int", "bigint"), is_one_key("int", "string"), is_one_key("double", "double")
    (True, False, False)
    """
    return is_exact_key(left) and (left == right or (left in INTEGERS and right in INTEGERS))


def averages_doubles(argument: str | None) -> bool:
    """Whether Spark computes AVG of these decimals from doubles (its optimizer's rule `DecimalAggregates`).

    >>> averages_doubles("decimal(11,2)"), averages_doubles("decimal(12,2)"), averages_doubles("int")
    (True, False, False)
    """
    decimal = decimal_of(argument) if is_decimal(argument) else None
    return decimal is not None and decimal[0] + 4 <= DOUBLE_DIGITS
