"""Results of functions that no line of the table of signatures can say: by digits, fields and literals. Pure."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.coercion import (
    INTEGERS,
    LARGEST,
    VOID,
    bounded_decimal,
    castable,
    decimal_of,
    implicit_cast,
    interval_kind,
    is_decimal,
    is_interval,
    is_nested,
)
from sqlmesh_like.analyze.spark_types.operators import decimal_from_literal, interval_total
from sqlmesh_like.analyze.spark_types.refusal import Refusal
from sqlmesh_like.analyze.spark_types.type_names import is_known
from sqlmesh_like.dialects import is_literal_with_suffix

Outcome = str | Refusal | None
_PARTS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "second"),
    **dict.fromkeys(
        ("YEAROFWEEK", "QUARTER", "QTR", "WEEK", "W", "WEEKS", "DAYOFWEEK", "DOW", "DAYOFWEEK_ISO", "DOW_ISO", "DOY"),
        "calendar",
    ),
}
"""Fields of EXTRACT (Spark 3.5 `DatePart.parseExtractField`)."""
_INTERVAL_PARTS = {
    "months": {"year": "int", "month": "tinyint"},
    "seconds": {"day": "int", "hour": "tinyint", "minute": "tinyint", "second": "decimal(8,6)"},
    "calendar": {"year": "int", "month": "tinyint", "day": "int", "hour": "tinyint", "minute": "tinyint",
                 "second": "decimal(8,6)"},
}  # fmt: skip
_UNITS = {"WEEK": "day", "MILLISECOND": "second", "MICROSECOND": "second"}


def narrow(side: exp.Expr, type_: str) -> str:
    """The type of an operand beside a decimal: an integer literal (`7`, `-7L`) has that of its digits."""
    literal = side.this if isinstance(side, exp.Neg) else side
    if is_literal_with_suffix(literal):
        literal = literal.this
    return decimal_from_literal(literal.name) if isinstance(literal, exp.Literal) and type_ in INTEGERS else type_


def whole_literal(node: exp.Expr) -> int | None:
    is_negative = isinstance(node, exp.Neg)
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal) or not literal.name.isdigit():
        return None
    return -int(literal.name) if is_negative else int(literal.name)


def rounded_decimal(type_: str, digits: int | None) -> str | None:
    """`RoundBase.dataType`: rounding may need one more digit before the point."""
    if digits is None:
        return None
    precision, scale = decimal_of(type_) or (0, 0)
    whole = precision - scale + 1
    if digits < 0:
        return f"decimal({min(LARGEST, max(whole, 1 - digits))},0)"
    kept = min(scale, digits)
    return f"decimal({min(LARGEST, whole + kept)},{kept})"


def numeric_aggregate_type(type_: str | None, result: Callable[[str | None], str | None]) -> Outcome:
    if type_ is None:
        return None
    if type_ in ("boolean", "binary", "date", "timestamp_ntz") or is_nested(type_):
        return Refusal(f"a sum is of numbers, not {type_}")
    return result("double" if type_ == "timestamp" else type_)


def cast_to(target: str, actual: str | None, *, is_tried: bool = False) -> Outcome:
    if actual is not None and is_known(actual) and is_known(target) and not castable(actual, target, is_tried=is_tried):
        return Refusal(f"{actual} cannot be cast to {target}")
    return target


def interval_type(node: exp.Interval) -> str | None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        return f"interval {unit.this.name} to {unit.expression.name}".lower()
    name = (unit.name if unit is not None else "").upper().removesuffix("S")
    return f"interval {_UNITS.get(name, name.lower())}" if name else None


def part_type(field: str, type_: str | None) -> Outcome:
    """Type of EXTRACT and DATE_PART."""
    part = _PARTS.get(field.upper())
    if type_ is None:
        return None
    if is_interval(type_):
        parts = _INTERVAL_PARTS[interval_kind(type_)]
        return parts.get(part or "") or Refusal(f"{type_} has no field {field}")
    if type_ == VOID:
        return None
    if part is None:
        return Refusal(f"{field} is not a field of {type_}")
    if implicit_cast(type_, "timestamp") is None:
        return Refusal(f"{type_} has no field {field}")
    return "decimal(8,6)" if part == "second" else "int"


def sum_type(argument: str | None) -> str | None:
    """Type of SUM.

    >>> sum_type("int"), sum_type("decimal(10,2)"), sum_type("string")
    ('bigint', 'decimal(20,2)', 'double')
    """
    if argument in INTEGERS:
        return "bigint"
    if argument in ("float", "double", "string", VOID):
        return "double"
    if argument is not None and is_interval(argument):
        return argument
    precision, scale = (decimal_of(argument) if is_decimal(argument) else None) or (0, 0)
    return f"decimal({min(LARGEST, precision + 10)},{scale})" if precision else None


def avg_type(argument: str | None) -> str | None:
    """Type of AVG.

    >>> avg_type("int"), avg_type("decimal(10,2)"), avg_type("decimal(38,10)")
    ('double', 'decimal(14,6)', 'decimal(38,14)')
    """
    if argument in (*INTEGERS, "float", "double", "string", VOID):
        return "double"
    if argument is not None and is_interval(argument):
        return interval_total(argument)
    precision, scale = (decimal_of(argument) if is_decimal(argument) else None) or (0, 0)
    # DecimalType.bounded caps precision and scale at 38, without reducing the scale to keep whole digits.
    return bounded_decimal(precision + 4, scale + 4) if precision else None


def number_of_format(node: exp.Expr) -> str | None:
    """Type of TO_NUMBER: a decimal of the digits of its format.

    >>> number_of_format(exp.Literal.string("$99,999.9S"))
    'decimal(6,1)'
    """
    if not isinstance(node, exp.Literal) or not node.is_string:
        return None
    whole, _, fraction = node.name.upper().replace("D", ".").partition(".")
    digits = [sum(character in "09" for character in part) for part in (whole, fraction)]
    return f"decimal({sum(digits)},{digits[1]})" if 0 < sum(digits) <= LARGEST else None
