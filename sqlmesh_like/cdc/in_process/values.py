"""Values of Spark SQL in Python. Owns their types, their order and their texts.

A NULL is None; a struct is a `Row`, a list a list, a map a dict; a timestamp is a datetime in UTC with microseconds,
and a number an int, a float (a `Float32` of that type) or a Decimal with
the digits of its type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlmesh_like.analyze.spark_types.java_numbers import double_text, float_text

Value = Any
"""None, str, bytes, bool, int, float, Decimal, date, datetime, list, dict or Row: what a column of a frame may hold."""


INTEGER_BOUNDS = {"int": 2**31, "bigint": 2**63}
"""The first number that is too large for a type of whole numbers."""


class NotProvenError(Exception):
    """Spark has to take the batch: what it would do is not certain here. The text says where it differs or may."""


class Row(tuple[Value, ...]):
    """The values of a row or a struct, by place or by name."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], values: Sequence[Value]) -> Row:
        row = cls(values)
        row.names = names
        return row

    def __getitem__(self, item: Any) -> Any:
        return super().__getitem__(places(self.names)[item.lower()] if isinstance(item, str) else item)


@lru_cache(maxsize=4096)
def places(names: tuple[str, ...]) -> dict[str, int]:
    """The place of each name, which Spark finds whatever its case. Raises NotProvenError for two that are alike."""
    result = {name.lower(): place for place, name in enumerate(names)}
    if len(result) < len(names):
        raise NotProvenError(f"two columns of one name among {', '.join(names)}")
    return result


class Float32(float):
    """A number of Spark's type float, whose text has fewer digits than that of the double."""

    __slots__ = ()


class Rewritten(str):
    """A JSON value with a fraction as text: Spark writes the number anew, in digits of Java that are not known here.

    It may be passed on and asked for its presence, but not be compared, taken apart or stored.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Undecoded:
    """A text of Spark's whose bytes are not UTF-8. It may be passed on, measured and cast to binary, nothing else."""

    raw: bytes


def order_of(value: Value) -> Any:
    """What orders values as Spark does: NULL is smallest, structs compare by their members in turn."""
    if value is None:
        return (0,)
    if isinstance(value, Row):
        return (1, tuple(order_of(each) for each in value))
    if isinstance(value, float) and value != value:
        raise NotProvenError("the order of NaN")
    return (1, certain(value))


def certain(value: Value) -> Value:
    """The value. Raises NotProvenError if its text is not known."""
    if isinstance(value, Rewritten):
        raise NotProvenError("the text of a number with a fraction in JSON")
    return text_in_full(value)


def text_in_full(value: Value) -> Value:
    """The value. Raises NotProvenError for a text that cannot be held here."""
    if isinstance(value, Undecoded):
        raise NotProvenError("bytes that are not UTF-8")
    return value


def bytes_in_full(value: Value) -> Value:
    """The value, or the bytes of a text that is not UTF-8."""
    return value.raw if isinstance(value, Undecoded) else certain(value)


def group_of(value: Value) -> Any:
    """The value as a key of a dict: equal only for values that Spark groups together."""
    if isinstance(value, list | tuple):
        return tuple(group_of(each) for each in value)
    if isinstance(value, dict):
        raise NotProvenError("a map as key of a group")
    # In Python, True is 1 and 1 is 1.0.
    return (type(value).__name__, certain(value))


def text_of(value: Value) -> Value:
    """What `cast(value as string)` gives."""
    match value:
        case None:
            return None
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return Undecoded(value)
        case Undecoded():
            return value
        case int():
            return str(value)
        case Decimal():
            return str(value)  # both Java and Python write an exponent from the seventh digit after the point on
        case float():
            return number_text(value)
        case datetime():
            text = value.strftime("%m-%d %H:%M:%S")
            fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
            return f"{value.year:04d}-{text}{fraction}"
        case date():
            return value.isoformat()
    raise NotProvenError(f"the text of a {type(value).__name__}")


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")
"""A half of a character: Java writes one sign for its three bytes, Python three."""


def decoded(value: bytes) -> str:
    """The text that UTF-8 bytes are, with a sign (U+FFFD) for each part of them that is not UTF-8."""
    if _SURROGATE.search(value):
        raise NotProvenError("bytes that are halves of characters")
    return value.decode(errors="replace")


def number_text(value: float) -> str:
    """The text of a double or a `Float32`. Raises NotProvenError where Java's digits are not certain."""
    text = float_text(value) if isinstance(value, Float32) else double_text(value)
    if text is None:
        raise NotProvenError(f"the text of the number {value!r}")
    return text
