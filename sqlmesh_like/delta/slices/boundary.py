"""Boundaries between partitions: texts that are compared with values of a column. Owns their order and their SQL."""

from __future__ import annotations

import re
from datetime import datetime

from sqlglot import exp

INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""Types of whole numbers, with their bits."""


def order_of(type_: str, text: str) -> tuple[int, str]:
    """A boundary as a value that is ordered as its column is. Raises ValueError with the reason.

    >>> order_of("int", "202401"), order_of("date", "2024-01-31"), order_of("string", "2024-01")
    ((202401, ''), (0, '2024-01-31'), (0, '2024-01'))
    """
    if type_ in INTEGERS:
        if not re.fullmatch(r"-?\d{1,19}", text.strip()) or not _fits(int(text), INTEGERS[type_]):
            raise ValueError(f"{text!r} is not a whole number of type {type_}")
        return int(text), ""
    if type_ == "date":
        try:
            return 0, datetime.strptime(text, "%Y-%m-%d").date().isoformat()
        except ValueError:
            raise ValueError(f"{text!r} is not a date such as 2024-01-31") from None
    if type_ == "string":
        return 0, text
    raise ValueError(f"its type is {type_ or 'not known'}; only dates, texts and whole numbers are compared")


def boundary_value(type_: str, text: str) -> exp.Expr:
    """The boundary as a literal of its type. Raises ValueError with the reason."""
    number, ordered = order_of(type_, text)
    if type_ in INTEGERS:
        return exp.cast(exp.Literal.number(number), type_, dialect="spark")
    return exp.cast(exp.Literal.string(ordered), "date") if type_ == "date" else exp.Literal.string(ordered)


def _fits(value: int, bits: int) -> bool:
    return value.bit_length() < bits  # one of the bits is the sign's
