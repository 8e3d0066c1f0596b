"""What numbers and intervals can be written as literals. Owns the bounds that Spark checks when it parses them.

Source: `AstBuilder` and `IntervalUtils` of Spark 3.5.
"""

from __future__ import annotations

import math
import re
import struct

from sqlglot import Token

_LARGEST = {"Y": 2**7, "S": 2**15, "L": 2**63}
_MOST_DIGITS = 38
_MOST_MONTHS = 2**31 - 1
_RANGES = {
    ("YEAR", "MONTH"): r"(\d+)-(\d+)", ("DAY", "HOUR"): r"(\d+)\s+(\d+)", ("DAY", "MINUTE"): r"(\d+)\s+(\d+):(\d+)",
    ("DAY", "SECOND"): r"(\d+)\s+(\d+):(\d+):(\d+)(?:\.\d*)?", ("HOUR", "MINUTE"): r"(\d+):(\d+)",
    ("HOUR", "SECOND"): r"(\d+):(\d+):(\d+)(?:\.\d*)?", ("MINUTE", "SECOND"): r"(\d+):(\d+)(?:\.\d*)?",
}  # fmt: skip
_LEADING = {"YEAR": _MOST_MONTHS // 12, "DAY": 106_751_991, "HOUR": 2_562_047_788, "MINUTE": 153_722_867_280}
"""The most of a first unit; of days and smaller ones as many as 2**63 microseconds have."""
_FOLLOWING = {"MONTH": (11,), "HOUR": (23,), "MINUTE": (23, 59), "SECOND": (23, 59, 59)}
"""The most of the units after the first, up to the last one, whose name is the key."""


def bad_range(text: str, bounds: tuple[str, str], *, is_negative: bool = False) -> str | None:
    """Why a text is not an interval from one unit to another; None where it is. `is_negative`: a minus is before it.

    >>> bad_range("1 25", ("DAY", "HOUR")), bad_range("-1 23:59", ("DAY", "MINUTE"))
    ("'1 25' is out of the range of an interval from day to hour", None)
    """
    named, pattern = f"an interval from {bounds[0].lower()} to {bounds[1].lower()}", _RANGES.get(bounds)
    if pattern is None:
        return f"there is no interval from {bounds[0].lower()} to {bounds[1].lower()}"
    match = re.fullmatch(rf"\s*[+-]?{pattern}\s*", text)
    if match is None:
        return f"{text!r} is not {named}"
    first, *rest = map(int, match.groups())
    most = _FOLLOWING[bounds[1]][-len(rest) :]
    is_large = bounds[0] == "YEAR" and first * 12 + rest[0] - (is_negative or "-" in text[:2]) > _MOST_MONTHS
    if is_large or first > _LEADING[bounds[0]] or any(part > limit for part, limit in zip(rest, most, strict=True)):
        return f"{text!r} is out of the range of {named}"
    return None


def bad_number(sql: str, token: Token) -> str | None:
    """Why a number cannot be written so; None where it can."""
    match = re.match(r"(\d+)([YySsLl])\b", sql[token.start :])
    if match is not None:
        is_negative = sql[: token.start].rstrip().endswith("-")
        is_bad = int(match[1]) >= _LARGEST[match[2].upper()] + is_negative
        return f"{match[0]} is out of range" if is_bad else None
    match = re.match(r"((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(BD|[DdFf]|bd)?(?!\w)", sql[token.start :])
    if match is None or not (match[2] or "e" in match[1].lower()):
        return None
    return f"{match[0]} is out of range" if _is_out_of_range(match[1], (match[2] or "D").upper()) else None


def _is_out_of_range(number: str, suffix: str) -> bool:
    if suffix == "BD":
        digits, _, power = number.lower().partition("e")
        whole, _, fraction = digits.partition(".")
        scale = len(fraction) - int(power or 0)
        return max(len((whole + fraction).lstrip("0")), scale) > _MOST_DIGITS
    if suffix == "F":
        try:
            struct.pack(">f", float(number))
        except OverflowError:
            return True
        return False
    return math.isinf(float(number))
