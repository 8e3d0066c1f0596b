"""Values of YAML and CSV as values of Spark types. Owns the mapping, and inferring the type of values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from sqlmesh_like.run.values.seed_types import declared_type, infer_type

_DIGITS = 15
"""Significant digits that every double preserves: a number of YAML with more may have lost some."""
_ARRAY = re.compile(r"array<(.+)>", re.DOTALL)


def convert_value(value: object, type_: str) -> object:
    """Convert a value for DuckDB; times become naive and in UTC. Raises ValueError whose text, if any, is a hint.

    >>> convert_value("5.00", "decimal(10,2)"), convert_value(5, "string"), convert_value("2024-01-02", "date")
    (Decimal('5.00'), '5', datetime.date(2024, 1, 2))
    """
    if value is None:
        return None
    if match := _ARRAY.fullmatch(type_):
        if not isinstance(value, list):
            raise ValueError("write a list")
        return [convert_value(element, match[1]) for element in value]
    if type_.startswith(("struct<", "map<")):
        if not isinstance(value, dict):
            raise ValueError("write a mapping")
        return value
    if isinstance(value, list | dict):
        raise ValueError("")
    if type_ == "string":
        return _to_text(value)
    if type_ == "binary":
        return value if isinstance(value, bytes) else _to_text(value).encode()
    return _convert_text(_to_text(value), type_.replace("timestamp_ntz", "timestamp"))


def _convert_text(text: str, type_: str) -> object:
    try:
        converted = declared_type(type_).convert(text.strip())
    except ValueError as error:
        raise ValueError("" if str(error) == text.strip() else str(error)) from None
    if isinstance(converted, Decimal) and (scale := re.search(r",\s*([0-9]+)\)", type_)):
        return converted.quantize(Decimal(1).scaleb(-int(scale[1])))
    if isinstance(converted, datetime):
        return converted.astimezone(UTC).replace(tzinfo=None)
    return converted


def _to_text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return _digits(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).replace(tzinfo=None).isoformat(" ")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def _digits(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    exact = Decimal(repr(value))
    if len(exact.as_tuple().digits) > _DIGITS:
        raise ValueError("put it in quotes: as a number of YAML it may have lost digits")
    return format(exact, "f")


def type_of(values: Sequence[object], *, is_text: bool = False) -> str:
    """Infer the type of values that have none declared; text of CSV may be numbers and dates, text of YAML is text.

    >>> type_of([1, 2]), type_of([1, 2.5]), type_of(["1"]), type_of(["1"], is_text=True), type_of([])
    ('int', 'decimal(18,1)', 'string', 'int', 'string')
    """
    values = [str(value) for value in values if value != ""] if is_text else values
    if not values:
        return "string"  # nothing is known about a column without values; in a seed it is int, as in dbt
    if is_text:
        return infer_type(list(map(str, values))).name
    if any(isinstance(value, str | list | dict | bytes) for value in values):
        return _nested_type(values)
    kinds = {type(value) for value in values}
    if bool in kinds and len(kinds) > 1:
        return "string"
    return infer_type([_to_text(value) for value in values]).name


def _nested_type(values: Sequence[object]) -> str:
    if all(isinstance(value, list) for value in values):
        elements = [element for value in values if isinstance(value, list) for element in value if element is not None]
        return f"array<{type_of(elements)}>"
    return "string"
