"""Casts of Spark, `try_cast` included. Owns which values and texts are certain to be read as Spark reads them, and
which texts it certainly takes for no value of a type: NULL, by which an event becomes a dead letter.
"""

from __future__ import annotations

import re
import struct
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import TypeVar

from sqlmesh_like.cdc.in_process.json_values import exact_decimal
from sqlmesh_like.cdc.in_process.syntax import Type
from sqlmesh_like.cdc.in_process.values import (
    INTEGER_BOUNDS,
    Float32,
    NotProvenError,
    Rewritten,
    Undecoded,
    Value,
    number_text,
    text_of,
)

Moment = TypeVar("Moment")
_INTEGER = re.compile(r"[+-]?[0-9]{1,60}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,60}(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", re.ASCII)
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?: ?(?:(Z)|([+-])([0-9]{2}):([0-9]{2})))?",
    re.ASCII,
)
_MOST_DIGITS = 38
_WORDS = {"true": True, "t": True, "yes": True, "y": True, "1": True,
          "false": False, "f": False, "no": False, "n": False, "0": False}  # fmt: skip


def cast(value: Callable[[list[Value]], Value], type_: Type) -> Callable[[list[Value]], Value]:
    """The function of a row whose result is cast. Values that are not certain raise NotProvenError."""
    if type_.name == "decimal":
        return lambda row: _decimal(_trimmed(value(row)), type_.digits)
    convert = _CASTS.get(type_.name)
    if convert is None:
        raise NotProvenError(f"a cast to {type_.name}")

    def converted(row: list[Value]) -> Value:
        result = value(row) if type_.name in _UNTRIMMED else _trimmed(value(row))
        return None if result is None or _is_foreign(result, type_.name) else convert(result)

    return converted


_UNTRIMMED = {"string", "binary", "array", "struct"}


def _trimmed(value: Value) -> Value:
    """A text without the blanks around it, which Spark skips; NULL for one without anything else."""
    return value.strip(" ") or None if type(value) is str else value


_SIGNS = r':;,!?#_"/{}\[\]()'
_FOREIGN = {
    "int": re.compile(rf"[A-Za-z{_SIGNS}]"),
    "bigint": re.compile(rf"[A-Za-z{_SIGNS}]"),
    "decimal": re.compile(rf"[A-DF-Za-df-z{_SIGNS}]"),
    "float": re.compile(rf"[GHJ-MOQRSUVWZghj-moqrsuvwz{_SIGNS}]"),  # others are in Infinity, NaN, 0x1p-2, 1d and 1f
    "double": re.compile(rf"[GHJ-MOQRSUVWZghj-moqrsuvwz{_SIGNS}]"),
    "boolean": re.compile(r"^(?!(?i:true|t|yes|y|1|false|f|no|n|0)$)[A-Za-z0-9]+$"),
}
"""What no text has of which Spark makes a number or a boolean."""


def _is_foreign(value: Value, type_: str) -> bool:
    return type(value) is str and value.isascii() and type_ in _FOREIGN and bool(_FOREIGN[type_].search(value))


def _cast_error(value: Value, type_: str) -> NotProvenError:
    return NotProvenError(f"a {type(value).__name__} as {type_}")


def _bytes(value: Value) -> bytes:
    if isinstance(value, bytes | Undecoded):
        return value if isinstance(value, bytes) else value.raw
    if type(value) is not str:
        raise _cast_error(value, "binary")
    return value.encode()


def _integer(type_: str) -> Callable[[Value], int | None]:
    bound = INTEGER_BOUNDS[type_]

    def convert(value: Value) -> int | None:
        if type(value) is str and _INTEGER.fullmatch(value):
            number = int(value)
            return number if -bound <= number < bound else None
        if isinstance(value, Decimal) and value == value.to_integral_value():
            value = int(value)
        if not isinstance(value, int) or not -bound <= value < bound:
            raise _cast_error(value, type_)
        return int(value)

    return convert


def _boolean(value: Value) -> bool:
    if type(value) is str and value in _WORDS:
        return _WORDS[value]
    if not isinstance(value, bool | int | Decimal):
        raise _cast_error(value, "boolean")
    return bool(value)


def _number_text(value: Value, type_: str) -> str:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and type_ == "decimal":
        return number_text(float(value))  # Spark casts a float to a double before
    if type(value) is not str or not _NUMBER.fullmatch(value):
        raise _cast_error(value, type_)
    return value


def _decimal(value: Value, digits: tuple[int, ...]) -> Decimal | None:
    """The number, rounded to the digits of the type; NULL where it has more before the point."""
    if value is None or _is_foreign(value, "decimal"):
        return None
    number = Decimal(_number_text(value, "decimal"))
    precision, scale = digits
    _, own, exponent = number.as_tuple()
    if len(own) > _MOST_DIGITS or not -_MOST_DIGITS <= int(exponent) <= 0:
        return exact_decimal(number, digits)
    rounded = number.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP, Context(prec=2 * _MOST_DIGITS + 1))
    return exact_decimal(rounded, digits) if rounded.copy_abs() < Decimal(10) ** (precision - scale) else None


def _double(value: Value) -> float:
    if isinstance(value, Rewritten):
        value = str(value)  # however Spark writes it, it means this number
    result = float(value) if isinstance(value, float) else float(_number_text(value, "double"))
    if abs(result) == float("inf"):
        raise _cast_error(value, "double")
    return result


def _float(value: Value) -> Float32:
    """The nearest number of 32 bits. Java rounds a text once; here it is rounded to 64 bits first."""
    exact = _double(value)
    try:
        (result,) = struct.unpack("f", struct.pack("f", exact))
    except OverflowError:
        raise _cast_error(value, "float") from None
    bits = struct.unpack("Q", struct.pack("d", exact))[0]
    is_between = bits & 0x1FFFFFFF == 0x10000000 and not isinstance(value, float)
    if (is_between and Fraction(exact) != Fraction(Decimal(_number_text(value, "float")))) or 0 < abs(exact) < 1.2e-38:
        raise _cast_error(value, "float")
    return Float32(result)


def _date(value: Value) -> date | None:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    match = _DATE.fullmatch(value) if type(value) is str else None
    if match is None:
        raise _cast_error(value, "date")
    year, month, day = map(int, match.groups())
    return date(year, month, day) if _is_day(year, month, day) else None


def _is_day(year: int, month: int, day: int) -> bool:
    """Raises NotProvenError for the year 0, which Java has."""
    if not year:
        raise NotProvenError("a moment in the year 0")
    return 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]


def _moment(value: Value) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if type(value) is str and _DATE.fullmatch(value):
        midnight = _date(value)
        return None if midnight is None else _moment(midnight)
    match = _MOMENT.fullmatch(value) if type(value) is str else None
    if match is None:
        raise _cast_error(value, "timestamp")
    *parts, fraction, _, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, parts)
    if not _is_day(year, month, day) or hour > 23 or minute > 59 or second > 59:
        return None

    def moment() -> datetime:
        micros = int((fraction or "").ljust(6, "0"))
        local = datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC)
        if not sign:
            return local
        if int(hours) > 17 or int(minutes) > 59:
            raise ValueError
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        return local - offset if sign == "+" else local + offset

    try:
        return moment()
    except (ValueError, OverflowError):
        raise NotProvenError(f"{value!r} as a moment") from None


def _list(value: Value) -> Value:
    if not isinstance(value, list) or any(type(each) is not str for each in value):
        raise _cast_error(value, "array")
    return value


def _never(value: Value) -> Value:
    raise _cast_error(value, "struct")


_CASTS: Mapping[str, Callable[[Value], Value]] = {
    "string": lambda value: value if isinstance(value, str) else text_of(value),
    "binary": _bytes,
    "int": _integer("int"),
    "bigint": _integer("bigint"),
    "boolean": _boolean,
    "double": _double,
    "float": _float,
    "date": _date,
    "timestamp": _moment,
    "array": _list,
    "struct": _never,
}
