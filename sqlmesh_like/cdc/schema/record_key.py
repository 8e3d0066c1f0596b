"""Record keys of rows that may be gone: from the values of a primary key alone. Owns no spelling: `ods_layout` has it.

Remembered deletes and dead letters name rows by record key only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal

from sqlmesh_like.cdc.schema.ods_layout import EMPTY_PART, KEY_ESCAPES


def record_keys(names: Sequence[str], values: Sequence[object]) -> tuple[str, ...]:
    """The record keys of a row with these values of its primary key, in both spellings.

    >>> record_keys(["id", "at"], [7, "a|b"])[0], record_keys(["id", "at"], [7, ""])[0]
    ('7|a%7Cb', '7|%1')
    """
    texts = [_text(value) for value in values]
    named = json.dumps(dict(zip(names, texts, strict=True)), ensure_ascii=False, separators=(",", ":"))
    return "|".join(map(_escape_part, texts)), hashlib.sha256(named.encode()).hexdigest()


def _escape_part(text: str) -> str:
    for sign, escape in KEY_ESCAPES.items():
        text = text.replace(sign, escape)
    return text or EMPTY_PART


def _text(value: object) -> str:
    """A value as `ods_layout` spells it: as Spark casts it to string, without the zeros that a scale adds.

    >>> [_text(v) for v in (True, Decimal("1.50"), datetime(2024, 5, 1, 12, microsecond=500_000))]
    ['true', '1.5', '2024-05-01 12:00:00.5']
    >>> [_text(v) for v in (Decimal(100), Decimal("0E-10"), datetime(999, 5, 1))]
    ['100', '0E-1', '0999-05-01 00:00:00']
    """
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            has_scale = value.as_tuple().exponent != 0
            return str(value).rstrip("0").rstrip(".") if has_scale else str(value)
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
            return f"{moment.year:04d}-{moment:%m-%d %H:%M:%S}{fraction}"
        case bytes():
            return base64.encodebytes(value).decode().rstrip("\n").replace("\n", "\r\n")
        case _:
            return str(value)
