"""Types of seed columns. Owns which text is a value of which Spark type, and the narrowest type that holds a column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlmesh_like.errors import nearest

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DECIMAL_TYPE = re.compile(r"(?:decimal|numeric|dec)\s*(?:\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?")
_TRUE, _FALSE = frozenset({"true", "t", "yes", "y", "1"}), frozenset({"false", "f", "no", "n", "0"})
_INFERRED_PRECISIONS = (18, 38)
"""A decimal of 18 digits is stored as a long, with exact sums at a small price; 38 is the most that Spark has."""


@dataclass(frozen=True)
class SeedType:
    """A Spark type and how text becomes a value of it; `convert` raises ValueError for other text."""

    name: str
    convert: Callable[[str], object]


def _integer(bits: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        value = int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else None
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
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return date.fromisoformat(text)


def _timestamp(text: str) -> datetime:
    """A timestamp in UTC; text without a zone is in UTC already."""
    if not _TIMESTAMP.fullmatch(text) and not _DATE.fullmatch(text):
        raise ValueError(text)
    value = datetime.fromisoformat(text)
    return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)


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
_DOUBLE = SeedType("double", _number)
_TYPES = {
    # Avro, in which Hudi keeps its schema, has no integers below 32 bits.
    **dict.fromkeys(("int", "integer", "int4", "tinyint", "smallint"), SeedType("int", _integer(32))),
    **dict.fromkeys(("bigint", "long", "int8"), SeedType("bigint", _integer(64))),
    **dict.fromkeys(("string", "text", "varchar", "char"), STRING),
    **dict.fromkeys(("boolean", "bool"), SeedType("boolean", _boolean)),
    **dict.fromkeys(("double", "float8", "double precision"), _DOUBLE),
    **dict.fromkeys(("float", "real"), SeedType("float", _number)),
    "date": SeedType("date", _date),
    **dict.fromkeys(("timestamp", "datetime"), SeedType("timestamp", _timestamp)),
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


def infer_type(values: Sequence[str]) -> SeedType:
    """The narrowest type that holds every value and loses none of its text's meaning: `007` stays text.

    Decimals with more than 38 digits become doubles. A column without values is `int`, as in dbt, so that a sum over it
    is a number.

    >>> [infer_type(texts).name for texts in (["1", "20"], ["1", "2.50"], ["007"], ["2024-01-02"])]
    ['int', 'decimal(18,2)', 'string', 'date']
    """
    if not values:
        return _TYPES["int"]
    if all(value.lower() in ("true", "false") for value in values):
        return _TYPES["boolean"]
    numbers = [_DECIMAL.fullmatch(value) for value in values]
    if all(numbers):
        return _exact([seed_type for seed_type in numbers if seed_type]) or _DOUBLE
    if all(
        _NUMBER.fullmatch(value) and not re.match(r"[+-]?(0[0-9]|[ni+])|\+", value, re.IGNORECASE) for value in values
    ):
        return _DOUBLE
    return next((seed_type for seed_type in (_TYPES["date"], _TYPES["timestamp"]) if _holds(seed_type, values)), STRING)


def _exact(numbers: Sequence[re.Match[str]]) -> SeedType | None:
    scale = max(len(digits[2] or "") for digits in numbers)
    if not scale:
        values = [digits[0] for digits in numbers]
        integers = (_TYPES["int"], _TYPES["bigint"], _decimal(38, 0))
        return next((digits for digits in integers if _holds(digits, values)), STRING)
    whole = max(len(digits[1]) for digits in numbers)
    return next((_decimal(digits, scale) for digits in _INFERRED_PRECISIONS if whole + scale <= digits), None)


def _holds(type_: SeedType, values: Sequence[str]) -> bool:
    try:
        for value in values:
            type_.convert(value)
    except ValueError:
        return False
    return True
