"""Spark's implicit conversions: the type that values of two types widen to, and what an argument or a cast accepts.

Source: Spark 3.5 `TypeCoercion` (without ANSI), `DecimalPrecision` and `Cast.canCast`. A type is in Spark's short
spelling; `void` is that of NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlmesh_like.analyze.spark_types.nested_types import element_of, entry_of, typed_fields_of

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
TIMES = ("timestamp", "timestamp_ntz")
VOID = "void"
LARGEST = 38
"""Most digits of a decimal."""
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_NUMBERS = (*INTEGERS, *FLOATS)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MONTHS = ("month", "year")


def decimal_of(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal or integer type.

    >>> decimal_of("decimal(10,2)"), decimal_of("int"), decimal_of("double")
    ((10, 2), (10, 0), None)
    """
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    match = _DECIMAL.fullmatch(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def is_decimal(type_: str | None) -> bool:
    return _DECIMAL.fullmatch(type_ or "") is not None


def is_number(type_: str | None) -> bool:
    return type_ in _NUMBERS or is_decimal(type_)


def is_interval(type_: str | None) -> bool:
    return type_ is not None and type_.startswith("interval")


def is_nested(type_: str) -> bool:
    return type_.startswith(("array<", "map<", "struct<"))


def interval_kind(type_: str) -> str:
    """`months`, `seconds` or `calendar`: intervals of different kinds have no common type.

    >>> interval_kind("interval year to month"), interval_kind("interval day"), interval_kind("interval")
    ('months', 'seconds', 'calendar')
    """
    if type_ == "interval":
        return "calendar"
    return "months" if type_.endswith(_MONTHS) else "seconds"


def bounded_decimal(precision: int, scale: int) -> str:
    """A decimal type whose precision and scale are each cut to 38 (`DecimalType.bounded`)."""
    return f"decimal({min(LARGEST, precision)},{min(LARGEST, scale)})"


def widest(types: Iterable[str], *, text_wins: bool = True) -> str | None:
    """The one type that values of all these types are converted to; None if Spark finds none.

    `text_wins`: a text beside a number or a time makes all of them texts, as in COALESCE and CASE, but not in GREATEST.

    >>> widest(["int", "decimal(10,2)"]), widest(["int", "string"]), widest(["boolean", "int"])
    ('decimal(12,2)', 'string', None)
    """
    # Texts first: string promotion is not associative.
    ordered = sorted(types, key=lambda type_: type_ != "string")

    common = ordered[0] if ordered else None
    for type_ in ordered[1:]:
        common = wider(common, type_, text_wins=text_wins) if common is not None else None
    return common


def wider(left: str, right: str, *, text_wins: bool = True) -> str | None:
    """`findWiderTypeForTwo`, or without string promotion."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if is_number(left) and is_number(right):
        return _wider_number(left, right)
    sides = {left, right}
    if sides <= {"date", *TIMES}:
        return "timestamp" if "timestamp" in sides else "timestamp_ntz"
    if "string" in sides:
        other = right if left == "string" else left
        return "string" if text_wins and not is_nested(other) and other not in ("binary", "boolean") else None
    if is_interval(left) and is_interval(right):
        return _wider_interval(left, right)
    return _wider_nested(left, right, text_wins=text_wins)


def _wider_number(left: str, right: str) -> str:
    if left in _NUMBERS and right in _NUMBERS:
        return _NUMBERS[max(_NUMBERS.index(left), _NUMBERS.index(right))]
    if left in FLOATS or right in FLOATS:
        return "double"
    (p1, s1), (p2, s2) = decimal_of(left) or (0, 0), decimal_of(right) or (0, 0)
    scale = max(s1, s2)
    return bounded_decimal(max(p1 - s1, p2 - s2) + scale, scale)


_UNITS = ("year", "month", "day", "hour", "minute", "second")


def _wider_interval(left: str, right: str) -> str | None:
    if interval_kind(left) != interval_kind(right) or "interval" in (left, right):
        return None
    units = sorted({_UNITS.index(unit) for type_ in (left, right) for unit in type_.split() if unit in _UNITS})
    first, last = _UNITS[units[0]], _UNITS[units[-1]]
    return f"interval {first}" if first == last else f"interval {first} to {last}"


def _wider_nested(left: str, right: str, *, text_wins: bool) -> str | None:
    if (one := element_of(left)) and (other := element_of(right)):
        element = wider(one, other, text_wins=text_wins)
        return f"array<{element}>" if element else None
    if (first := entry_of(left)) and (second := entry_of(right)):
        entry = [wider(a, b, text_wins=text_wins) for a, b in zip(first, second, strict=True)]
        return f"map<{entry[0]},{entry[1]}>" if all(entry) else None
    ours, theirs = typed_fields_of(left), typed_fields_of(right)
    if ours and theirs and [name.lower() for name, _ in ours] == [name.lower() for name, _ in theirs]:
        types = [wider(a, b, text_wins=text_wins) for (_, a), (_, b) in zip(ours, theirs, strict=True)]
        fields = ",".join(f"{name}:{type_}" for (name, _), type_ in zip(ours, types, strict=True))
        return f"struct<{fields}>" if all(types) else None
    return None


def implicit_cast(actual: str, expected: str) -> str | None:
    """The type that an argument of one type has where another is expected; None if Spark refuses it.

    `expected` is a type, `any`, `number`, `integer`, `time`, `array`, `map`, `struct`, `interval`, or several of these
    by `|`, of which one that fits unchanged is preferred, then the first that it can be converted to. After `=` nothing
    but NULL is converted (`ExpectsInputTypes` without `ImplicitCastInputTypes`).

    >>> implicit_cast("int", "string"), implicit_cast("string", "number"), implicit_cast("boolean", "int")
    ('string', 'double', None)
    """
    choices = expected.removeprefix("=").split("|")
    if any(_fits(actual, choice) for choice in choices):
        return actual
    if expected.startswith("=") and actual != VOID:
        return None
    return next((made for choice in choices if (made := _implicit_cast_to(actual, choice))), None)


def _fits(actual: str, expected: str) -> bool:
    match expected:
        case "any":
            return True
        case "number":
            return is_number(actual)
        case "integer":
            return actual in INTEGERS
        case "decimal":
            return is_decimal(actual)
        case "time":
            return actual in TIMES
        case "interval":
            return is_interval(actual)
        case "array" | "map" | "struct":
            return actual.startswith(f"{expected}<")
    return actual == expected


_DEFAULTS = {"number": "double", "integer": "bigint", "time": "timestamp", "decimal": "decimal(38,18)",
             "any": VOID, "interval": "interval", "array": VOID, "map": VOID, "struct": VOID}  # fmt: skip


def _implicit_cast_to(actual: str, expected: str) -> str | None:
    """`TypeCoercion.implicitCast` to one type, or class of types, that the value does not have yet."""
    if actual == VOID:
        return _DEFAULTS.get(expected, expected)
    if expected == "string":
        return None if is_nested(actual) or actual == "interval" else "string"
    if actual == "string":
        if expected in (*_NUMBERS, "date", *TIMES, "binary") or is_decimal(expected):
            return expected
        return {"number": "double", "time": "timestamp", "decimal": "decimal(38,18)"}.get(expected)
    if (element := element_of(actual)) and (wanted := element_of(expected)):
        made = implicit_cast(element, wanted)
        return f"array<{made}>" if made else None
    if expected in ("date", *TIMES, "time"):
        return {"time": "timestamp"}.get(expected, expected) if actual in ("date", *TIMES) else None
    if is_number(actual) and (expected in _NUMBERS or is_decimal(expected)):
        return expected
    if expected == "decimal" and is_number(actual):
        precision = {"float": (14, 7), "double": (30, 15)}.get(actual) or decimal_of(actual)
        return f"decimal({precision[0]},{precision[1]})" if precision else None
    return None


def castable(actual: str, target: str, *, is_tried: bool = False) -> bool:
    """Whether Spark casts values of a type to another one (`Cast.canCast`; TRY_CAST follows `Cast.canAnsiCast`).

    >>> castable("date", "int"), castable("boolean", "date"), castable("array<int>", "array<string>")
    (True, False, True)
    >>> castable("date", "int", is_tried=True)
    False
    """
    if actual in (target, VOID) or target == "string":
        return True
    if is_nested(actual) or is_nested(target):
        return _nested_castable(actual, target, is_tried=is_tried)
    if is_tried and (_CLASS.get(actual, "number"), _CLASS.get(target, "number")) in _NOT_TRIED:
        return False
    if is_interval(actual) or is_interval(target):
        return _interval_castable(actual, target)
    match target:
        case "binary":
            return actual == "string" or actual in INTEGERS
        case "timestamp":
            return actual != "binary"
        case "timestamp_ntz" | "date":
            return actual in ("string", "date", *TIMES)
    # A number or a boolean.
    return is_number(actual) or actual in ("string", "boolean", "date", "timestamp")


_CLASS = {name: name for name in ("binary", "boolean", "date", "timestamp", "timestamp_ntz", "string")}
_NOT_TRIED = frozenset({
    ("number", "binary"), ("boolean", "timestamp"), ("date", "number"), ("date", "boolean"), ("timestamp", "boolean"),
})  # fmt: skip
"""Casts that TRY_CAST does not know."""


def _interval_castable(actual: str, target: str) -> bool:
    if actual == "string":
        return True
    if is_interval(actual) and is_interval(target):
        return interval_kind(actual) == interval_kind(target)
    interval, other = (actual, target) if is_interval(actual) else (target, actual)
    return interval != "interval" and (other in INTEGERS or is_decimal(other))


def _nested_castable(actual: str, target: str, *, is_tried: bool) -> bool:
    """An array to an array, a map to a map, a struct to one of as many fields; in doubt it is possible."""
    if actual.partition("<")[0] != target.partition("<")[0]:
        return False
    ours, theirs = _types_within(actual), _types_within(target)
    if not ours or not theirs:
        return True
    return len(ours) == len(theirs) and all(
        castable(a, b, is_tried=is_tried) for a, b in zip(ours, theirs, strict=True)
    )


def _types_within(type_: str) -> list[str]:
    """Types of the parts of an array, a map or a struct; nothing where names of fields are not plain."""
    if element := element_of(type_):
        return [element]
    return list(entry_of(type_) or ()) or [field_type for _, field_type in typed_fields_of(type_)]
