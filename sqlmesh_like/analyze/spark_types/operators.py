"""Types of operators: arithmetic on numbers, times and intervals, comparisons, bits and conditions.

Source: Spark 3.5 `ResolveBinaryArithmetic`, `DecimalPrecision`, `DecimalType.adjustPrecisionScale` and `TypeCoercion`
(without ANSI).
"""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.coercion import (
    INTEGERS,
    LARGEST,
    TIMES,
    VOID,
    decimal_of,
    interval_kind,
    is_decimal,
    is_interval,
    is_nested,
    is_number,
    wider,
)
from sqlmesh_like.analyze.spark_types.refusal import Refusal

SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}
_ADDED_DAYS = ("tinyint", "smallint", "int", VOID)
_DURATION, _MONTHS = "interval day to second", "interval year to month"


def arithmetic(sign: str, left: str, right: str) -> str | Refusal:
    """Type of an arithmetic operator over two types.

    >>> arithmetic("*", "int", "decimal(10,2)"), arithmetic("+", "string", "int"), arithmetic("-", "date", "int")
    ('decimal(21,2)', 'double', 'date')
    """
    made = _of_times(sign, left, right) or _of_numbers(sign, *(_as_number(side) for side in (left, right)))
    return made or Refusal(f"{left} {sign} {right} is not possible")


def _as_number(type_: str) -> str:
    """Spark computes with texts as doubles."""
    return "double" if type_ == "string" else type_


def _of_numbers(sign: str, left: str, right: str) -> str | None:
    if left == right == VOID:
        return "bigint" if sign == "div" else "double"
    if sign == "/" and left == VOID and is_number(right):
        return "double"
    left, right = (right if left == VOID else left), (left if right == VOID else right)
    if not is_number(left) or not is_number(right):
        return None
    if sign == "div":
        return None if {left, right} & {"float", "double"} else "bigint"
    if is_decimal(left) or is_decimal(right):
        first, second = decimal_of(left), decimal_of(right)
        return _of_decimals(sign, first, second) if first and second else "double"
    return "double" if sign == "/" else wider(left, right)


def _of_decimals(sign: str, first: tuple[int, int], second: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = first, second
    match sign:
        case "+" | "-":
            scale = max(s1, s2)
            return adjust_precision_scale(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjust_precision_scale(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjust_precision_scale(p1 - s1 + s2 + scale, scale)
    return adjust_precision_scale(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2))


def adjust_precision_scale(precision: int, scale: int) -> str:
    """A decimal type, reduced to 38 digits as in Spark's `DecimalType.adjustPrecisionScale`."""
    if precision <= LARGEST:
        return f"decimal({precision},{scale})"
    whole = precision - scale
    return f"decimal({LARGEST},{max(LARGEST - whole, min(scale, 6))})"


def _of_times(sign: str, left: str, right: str) -> str | None:
    """Arithmetic with dates, timestamps or intervals; None for anything else."""
    sides = (left, right)
    if sign in ("*", "/"):
        return _interval_times_number(sign, left, right)
    if sign == "div":
        return "bigint" if _are_of_one_kind(left, right) else None
    if sign == "%":
        return None
    if all(map(is_interval, sides)):
        return wider(left, right)
    if is_interval(right):
        return _moment_plus_interval(left, right)
    if is_interval(left):
        return _moment_plus_interval(right, left) if sign == "+" or right == VOID else None
    if sign == "-" and ("date" in sides or set(sides) & set(TIMES)):
        return _difference(left, right)
    for one, other in (sides, sides[::-1]):
        if one == "date" and other in _ADDED_DAYS:
            return "date"
    return None


def _moment_plus_interval(moment: str, interval: str) -> str | None:
    if moment == "date":
        return (
            "date" if interval_kind(interval) == "months" or interval in ("interval day", "interval") else "timestamp"
        )
    if moment == VOID:
        return interval
    if interval_kind(interval) == "months":
        return moment if moment in TIMES else None
    return moment if moment in (*TIMES, "string") else None


def _are_of_one_kind(left: str, right: str) -> bool:
    kinds = {interval_kind(side) for side in (left, right) if is_interval(side)}
    return len(kinds) == 1 and all(is_interval(side) or side == VOID for side in (left, right))


def _difference(left: str, right: str) -> str | None:
    if right == "date" and left in ("date", "string", VOID):
        return "interval day"
    if left == "date" and right in _ADDED_DAYS:
        return "date"
    return _DURATION if {left, right} <= {"date", *TIMES, VOID} else None


def _interval_times_number(sign: str, left: str, right: str) -> str | None:
    interval, factor = (left, right) if is_interval(left) else (right, left)
    if not is_interval(interval) or (sign == "/" and interval is right):
        return None
    if not is_number(factor) and factor not in ("string", VOID):
        return None
    return interval_total(interval)


def interval_total(interval: str) -> str:
    """Type of a multiple or a sum of intervals."""
    return {"seconds": _DURATION, "months": _MONTHS, "calendar": "interval"}[interval_kind(interval)]


def decimal_from_literal(literal: str) -> str:
    """The decimal type of an integer literal beside a decimal: Spark takes the digits that it has.

    >>> decimal_from_literal("100")
    'decimal(3,0)'
    """
    return f"decimal({len(str(abs(int(literal))))},0)"


def bitwise(left: str, right: str) -> str | None:
    sides = [side for side in (left, right) if side != VOID]
    return wider(left, right) if sides and all(side in INTEGERS for side in sides) else None


def is_comparable(left: str, right: str, *, is_equality: bool) -> bool:
    """Whether Spark compares values of two types (`findCommonTypeForBinaryComparison` and what follows it)."""
    if left == right or VOID in (left, right):
        return not left.startswith("map<")
    if "string" in (left, right):
        other = right if left == "string" else left
        return not is_nested(other) and not is_interval(other)
    if is_equality and "boolean" in (left, right):
        other = right if left == "boolean" else left
        return is_number(other)
    return wider(left, right, text_wins=False) is not None
