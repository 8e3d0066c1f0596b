"""A range of partitions, by the values of one column. Owns its condition and its form on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from sqlglot import exp

from sqlmesh_like.analyze.binding.expression_copies import operand
from sqlmesh_like.delta.slices.boundary import INTEGERS, boundary_value, order_of

_PERIOD = re.compile(r"(\d{4})(?:-(\d{2}))?(?:-(\d{2}))?")


@dataclass(frozen=True)
class PartitionRange:
    """Values from `low` on and below `high`, literals of the column's `type`; None: there is no such bound.

    NULL belongs to a range without `low`.
    """

    type: str
    low: str | None = None
    high: str | None = None

    def holds(self, value: exp.Expr) -> exp.Expr:
        """The condition for a value. Raises ValueError if a bound is not a value of the type."""
        conditions: list[exp.Expr] = []
        value = operand(value)
        if self.low is not None:
            conditions.append(exp.GTE(this=value.copy(), expression=boundary_value(self.type, self.low)))
        if self.high is not None:
            conditions.append(exp.LT(this=value.copy(), expression=boundary_value(self.type, self.high)))
        if not conditions:
            return exp.true()
        both = exp.and_(*conditions)
        return both if self.low is not None else exp.or_(both, exp.Is(this=value.copy(), expression=exp.null()))

    def reaches_below(self, boundary: str) -> bool:
        """Whether it has values below a boundary. Raises ValueError if that is not a value of the type."""
        return self.low is None or order_of(self.type, self.low) < order_of(self.type, boundary)


def split_words(words: str) -> tuple[str, str]:
    """The two ends of `FROM..TO`. Raises ValueError where there are not two, or both are empty.

    >>> split_words("2024-01..2024-03"), split_words("2024-01..")
    (('2024-01', '2024-03'), ('2024-01', ''))
    """
    low, dots, high = (part.strip() for part in words.partition(".."))
    if not dots or not (low or high) or ".." in high:
        raise ValueError(f"{words!r} is not FROM..TO")
    return low, high


def range_of_words(type_: str, words: str) -> PartitionRange:
    """The range from FROM to TO, both included, and a month or a year of dates as a whole. Raises ValueError.

    >>> range_of_words("date", "2024-01..2024-02")
    PartitionRange(type='date', low='2024-01-01', high='2024-03-01')
    >>> range_of_words("int", "7..9"), range_of_words("string", "..b").high == "b\\U0010ffff"
    (PartitionRange(type='int', low='7', high='10'), True)
    """
    low, high = split_words(words)
    first = _first(type_, low) if low else None
    behind = _behind(type_, high) if high else None
    if first is not None and behind is not None and order_of(type_, first) >= order_of(type_, behind):
        raise ValueError(f"{low} comes after {high}")
    return PartitionRange(type_, first, behind)


def _first(type_: str, text: str) -> str:
    if type_ == "date":
        return _days(text)[0].isoformat()
    order_of(type_, text)
    return text


def _behind(type_: str, text: str) -> str | None:
    """The first value after those of a bound; None if it is the largest of the type."""
    if type_ == "date":
        last = _days(text)[1]
        return None if last == date.max else (last + timedelta(days=1)).isoformat()
    number, _ = order_of(type_, text)
    if type_ in INTEGERS:
        return None if number == 2 ** (INTEGERS[type_] - 1) - 1 else str(number + 1)
    return f"{text}\U0010ffff"  # also the values that begin with it, as those of a month do


def _days(text: str) -> tuple[date, date]:
    """The first and the last day of a day, a month or a year."""
    found = _PERIOD.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        year, month, day = (int(part) if part else None for part in found.groups())
        assert year is not None
        first = date(year, month or 1, day or 1)
        if day is not None:
            return first, first
        following = 12 if month is None else month
        last = date(year, following, 31) if following == 12 else date(year, following + 1, 1) - timedelta(days=1)
    except ValueError:
        raise ValueError(f"{text!r} is not a day, a month or a year such as 2024-01-31, 2024-01 or 2024") from None
    return first, last
