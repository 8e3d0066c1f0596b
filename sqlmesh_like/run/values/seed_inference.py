"""Texts of a seed's fields → values, as dbt reads them. Owns how agate, dbt's library for tables, is asked.

What is tried, in which order, and what is NULL is dbt's own choice (`dbt_common/clients/agate_helper.py`); a seed must
not mean something else here. Spark's types for the same values are chosen here: see "Seeds" of `docs/dbt.md`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from decimal import MAX_PREC, Decimal, localcontext

import agate
import isodate

from sqlmesh_like.run.values.seed_types import BOOLEAN, DATE, MOST_DIGITS, STRING, TIMESTAMP, SeedType, number_type

_NULLS = ("null", "")
"""Texts that are NULL in any column, compared without case and without the space around them."""

Columns = list[tuple[SeedType, Sequence[object]]]


class _Number(agate.data_types.Number):  # type: ignore[misc]
    """A finite number. What no numeric type holds without loss is text, where dbt's load fails or stores NULL."""

    def cast(self, text: object) -> Decimal | None:
        value: Decimal | None = super().cast(text)
        if value is None:
            return None
        is_long = (
            value.is_finite() and value == value.to_integral_value() and len(value.as_tuple().digits) > MOST_DIGITS
        )
        if is_long or not math.isfinite(float(value)):
            raise agate.exceptions.CastError(f"{text!r} fits no number")
        return value


class _DateTime(agate.data_types.DateTime):  # type: ignore[misc]
    """`%Y-%m-%d %H:%M:%S`, in UTC."""

    def cast(self, text: object) -> datetime | None:
        value: datetime | None = super().cast(text)
        return None if value is None else value.replace(tzinfo=UTC)


class _IsoDateTime(agate.data_types.DateTime):  # type: ignore[misc]
    """A time of ISO 8601, and no other: agate's own reading finds times in most texts. Without a zone it is in UTC."""

    def cast(self, text: str | None) -> datetime | None:
        if text is None or text.strip().lower() in self.null_values:
            return None
        try:
            value: datetime = isodate.parse_datetime(text.strip())
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except (ValueError, OverflowError, isodate.ISO8601Error):
            raise agate.exceptions.CastError(f"{text!r} is not a time") from None


def typed_columns(names: Sequence[str], rows: Sequence[Sequence[str]], declared: Collection[str]) -> Columns:
    """Type and values of each column; those that are `declared` stay text. Rows may be shorter than the header: NULL.

    >>> typed_columns(("a", "b"), [("007", "null"), ("1.50",), ()], ())[0][0].name
    'decimal(18,2)'
    """
    text = agate.Text(null_values=_NULLS)
    types = [
        _Number(null_values=_NULLS),
        agate.Date(null_values=_NULLS, date_format="%Y-%m-%d"),
        _DateTime(null_values=_NULLS, datetime_format="%Y-%m-%d %H:%M:%S"),
        _IsoDateTime(null_values=_NULLS),
        agate.Boolean(true_values=("true",), false_values=("false",), null_values=_NULLS),
        text,
    ]
    with localcontext(prec=MAX_PREC):  # agate multiplies each number by its sign, which rounds to the context's digits
        table = agate.Table(rows, names, agate.TypeTester(force=dict.fromkeys(declared, text), types=types))
    return [_column(column.data_type, column.values()) for column in table.columns]


def _column(data_type: object, values: Sequence[object]) -> tuple[SeedType, Sequence[object]]:
    match data_type:
        case _Number():
            type_ = number_type([value for value in values if isinstance(value, Decimal)])
            return type_, [None if value is None else type_.convert(f"{value:f}") for value in values]
        case agate.Date():
            return DATE, values
        case agate.DateTime():
            return TIMESTAMP, values
        case agate.Boolean():
            return BOOLEAN, values
    return STRING, values
