"""Functions of dates and timestamps, in UTC and in the years 1 to 9999. Owns the formats that are certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

from sqlmesh_like.cdc.in_process.values import NotProvenError, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_MICRO = timedelta(microseconds=1)
_SYMBOLS = re.compile(r"([A-Za-z])\1*|[^A-Za-z]+")
_SHORT: Mapping[str, Callable[[datetime], int]] = {
    "y": lambda moment: moment.year,
    "M": lambda moment: moment.month,
    "d": lambda moment: moment.day,
    "H": lambda moment: moment.hour,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
}


def _moment_at(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise NotProvenError("a moment beyond the year 9999") from None


def _day_at(days: int) -> date:
    try:
        return _FIRST_DAY + timedelta(days=days)
    except OverflowError:
        raise NotProvenError("a day beyond the year 9999") from None


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICRO


def _format(moment: Value, pattern: str) -> str:
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return "".join(_part(moment, match[0]) for match in _SYMBOLS.finditer(pattern))


def _part(moment: datetime, symbols: str) -> str:
    if not symbols.isalpha():
        if "'" in symbols:
            raise NotProvenError("a quoted text in a format")
        return symbols
    value = _SHORT[symbols[0]](moment) if symbols[0] in _SHORT else None
    is_year = symbols[0] == "y"
    if value is None or len(symbols) not in ((1, 2, 4) if is_year else (1, 2)):
        raise NotProvenError(f"the format {symbols}")
    return f"{value % 100:02d}" if symbols == "yy" else f"{value:0{len(symbols)}d}"


def _null_safe(function: Callable[..., Value], kind: type) -> Callable[..., Value]:
    def called(value: Value, *rest: Value) -> Value:
        if value is None:
            return None
        if not isinstance(value, kind) or isinstance(value, bool):
            raise NotProvenError(f"a moment of a {type(value).__name__}")
        return function(value, *rest)

    return called


MOMENT_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "date_format": _null_safe(_format, date),
    "date_from_unix_date": _null_safe(_day_at, int),
    "unix_date": _null_safe(lambda day: (day - _FIRST_DAY).days, date),
    "unix_micros": _null_safe(_micros, datetime),
    "unix_millis": _null_safe(lambda moment: _micros(moment) // 1000, datetime),
    "timestamp_micros": _null_safe(_moment_at, int),
    "timestamp_millis": _null_safe(lambda millis: _moment_at(millis * 1000), int),
    "timestamp_seconds": _null_safe(lambda seconds: _moment_at(seconds * 1_000_000), int),
}
