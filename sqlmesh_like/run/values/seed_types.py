"""Types of columns of text. Owns which text is a value of which Spark type, and the narrowest type of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal

from sqlmesh_like.errors import nearest

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_PLAIN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PLAIN_TIMESTAMP = re.compile(
    _PLAIN_DATE.pattern + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DAY = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})REST)?)?"
_OFFSET = r"(?P<sign>[+-])(?P<zone_hour>[0-9]{1,2}?)(?P<zone_minute>(?::[0-5]?[0-9]|(?<=[0-9]{2})[0-5][0-9])?)"
_ZONE = rf"(?:Z|UTC|GMT|UT|{_OFFSET})"
_SECOND = r"(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]*))?"
_CLOCK = rf"(?P<hour>[0-9]{{1,2}})(?::(?P<minute>[0-9]{{1,2}})(?::{_SECOND})?(?:\s*{_ZONE})?)?"
_CAST_DATE = re.compile(_DAY.replace("REST", r"(?:[T ].*)?"), re.DOTALL)
_CAST_TIMESTAMP = re.compile(_DAY.replace("REST", rf"(?:[T ]{_CLOCK})?"))
"""What Spark 3.5 casts (`SparkDateTimeUtils.parseTimestampString`), without years beyond 9999, names of zones, and
times without a day, which mean another day tomorrow. ISO's `07:00Z`, which Spark makes NULL, is a moment too."""
_FARTHEST = timedelta(hours=18)
"""The largest offset of a zone that Java knows."""
_DECIMAL_TYPE = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?")
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "1"}), frozenset({"false", "f", "no", "n", "0"})
MOST_DIGITS = 38
"""The digits that the longest decimal of Spark has."""
_INFERRED_PRECISIONS = (18, MOST_DIGITS)
"""A decimal of 18 digits is stored as a long, with exact sums at a small price."""


@dataclass(frozen=True)
class SeedType:
    """A Spark type and how text becomes a value of it; `convert` raises ValueError for other text."""

    name: str
    convert: Callable[[str], object]


def _integer(bits: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        match = re.fullmatch(r"([+-]?[0-9]+)(?:\.0*)?", text)
        value = int(match[1]) if match else None
        if value is None or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise ValueError(text)
        return value

    return convert


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ValueError(text)
    return float(text)


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise ValueError(text)


def _date(text: str) -> date:
    """The day that Spark casts a text to; a time behind it counts for nothing."""
    match = _CAST_DATE.fullmatch(text)
    if not match:
        raise ValueError(text)
    return date(*(int(match[part] or 1) for part in ("year", "month", "day")))


def _timestamp(text: str) -> datetime:
    """The moment, in UTC, that Spark casts a text to; text without a zone is in UTC already."""
    match = _CAST_TIMESTAMP.fullmatch(text)
    if not match:
        raise ValueError(text)
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    day, microsecond = _date(text), int((match["fraction"] or "")[:6].ljust(6, "0"))
    local = datetime.combine(day, time(hour, minute, second, microsecond), UTC)
    offset = timedelta(hours=int(match["zone_hour"] or 0), minutes=int((match["zone_minute"] or "").lstrip(":") or 0))
    if offset > _FARTHEST:
        raise ValueError(text)
    try:
        return local.replace(tzinfo=timezone(-offset if match["sign"] == "-" else offset)).astimezone(UTC)
    except OverflowError:
        raise ValueError(text) from None


def _decimal(precision: int, scale: int) -> SeedType:
    """A decimal type that refuses a value with more digits than it has, and does not round it."""

    def convert(text: str) -> Decimal:
        match = re.fullmatch(r"[+-]?0*([0-9]*)(?:\.([0-9]*?)0*)?", text)
        if not match or not any(map(str.isdigit, text)):
            raise ValueError(text)
        if len(match[1]) > precision - scale or len(match[2] or "") > scale:
            raise ValueError(text)
        return Decimal(text)

    return SeedType(f"decimal({precision},{scale})", convert)


STRING = SeedType("string", str)
BOOLEAN = SeedType("boolean", _boolean)
DATE = SeedType("date", _date)
TIMESTAMP = SeedType("timestamp", _timestamp)
_DOUBLE = SeedType("double", _number)
_TYPES = {
    # Avro, in which Hudi keeps its schema, has no integers below 32 bits.
    **dict.fromkeys(("int", "integer", "int4", "tinyint", "smallint"), SeedType("int", _integer(32))),
    **dict.fromkeys(("bigint", "long", "int8"), SeedType("bigint", _integer(64))),
    **dict.fromkeys(("string", "text", "varchar", "char"), STRING),
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("double", "float8", "double precision"), _DOUBLE),
    **dict.fromkeys(("float", "real"), SeedType("float", _number)),
    "date": DATE,
    **dict.fromkeys(("timestamp", "datetime"), TIMESTAMP),
}


def declared_type(text: str) -> SeedType:
    """The type that `column_types` names. Raises ValueError whose text names the types that exist.

    >>> declared_type("NUMERIC(10, 2)").name, declared_type("varchar(20)").name
    ('decimal(10,2)', 'string')
    """
    name = text.strip().lower()
    if match := _DECIMAL_TYPE.fullmatch(name):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not scale <= precision <= 38 or precision == 0:
            raise ValueError("a decimal has 1 to 38 digits, and no more of them behind the point")
        return _decimal(precision, scale)
    plain = re.sub(r"^(varchar|char)\s*\([0-9]+\)$", r"\1", name)
    if plain not in _TYPES:
        raise ValueError(
            nearest(plain, _TYPES) or f"known: {', '.join(sorted({t.name for t in _TYPES.values()}))}, decimal(p,s)"
        )
    return _TYPES[plain]


def number_type(numbers: Sequence[Decimal]) -> SeedType:
    """The narrowest type that holds each of these exactly, and as many digits behind the point as were written.

    Beyond 38 digits it is a double. Without numbers it is `int`, as in dbt, so that a sum over the column is a number.

    >>> [number_type([Decimal(text)]).name for text in ("1", "2.50", "1e3")]
    ['int', 'decimal(18,2)', 'int']
    """
    exponents = [number.as_tuple().exponent for number in numbers]
    scale = max((-exponent for exponent in exponents if isinstance(exponent, int)), default=0)
    whole = max((number.adjusted() + 1 for number in numbers), default=1)
    if scale > 0:
        fitting = (digits for digits in _INFERRED_PRECISIONS if max(whole, 1) + scale <= digits)
        return next((_decimal(digits, scale) for digits in fitting), _DOUBLE)
    for bits, type_ in ((32, _TYPES["int"]), (64, _TYPES["bigint"])):
        if whole <= bits and all(-(2 ** (bits - 1)) <= number < 2 ** (bits - 1) for number in numbers):
            return type_
    return _decimal(MOST_DIGITS, 0) if whole <= MOST_DIGITS else _DOUBLE


def infer_type(values: Sequence[str]) -> SeedType:
    """The narrowest type that holds every value and loses none of its text's meaning: `007` stays text.

    This is for rows that a test writes; `seed_inference` reads seeds.

    >>> [infer_type(texts).name for texts in (["1", "20"], ["1", "2.50"], ["007"], ["2024-01-02"])]
    ['int', 'decimal(18,2)', 'string', 'date']
    """
    if all(_DECIMAL.fullmatch(value) for value in values):
        is_long = all(value.lstrip("-").isdigit() for value in values) and any(
            len(value) > MOST_DIGITS for value in values
        )
        return STRING if is_long else number_type([Decimal(value) for value in values])
    if all(value.lower() in ("true", "false") for value in values):
        return BOOLEAN
    if all(
        _NUMBER.fullmatch(value) and not re.match(r"[+-]?(0[0-9]|[ni+])|\+", value, re.IGNORECASE) for value in values
    ):
        return _DOUBLE
    times = ((_PLAIN_DATE, DATE), (re.compile(f"{_PLAIN_DATE.pattern}|{_PLAIN_TIMESTAMP.pattern}"), TIMESTAMP))
    return next((type_ for pattern, type_ in times if _holds(pattern, type_, values)), STRING)


def _holds(pattern: re.Pattern[str], type_: SeedType, values: Sequence[str]) -> bool:
    try:
        return all(pattern.fullmatch(value) and (type_.convert(value), True)[1] for value in values)
    except ValueError:
        return False
