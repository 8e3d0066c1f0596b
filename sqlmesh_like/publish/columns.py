"""Arrow types as database types. Owns the type of a column in a database, and how its values are written.

Arrays, maps and structs, for which databases have no type, become JSON text. Times are in UTC, without a zone where
the type has none. SQLite has no decimals: they are text there, which keeps their digits.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlalchemy import types
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeEngine

from sqlmesh_like.publish.store import KEY_COLUMN

Convert = Callable[[Any], Any]

_MYSQL = ("mysql", "mariadb")
_KEY = types.String(32).with_variant(mysql.CHAR(32, charset="ascii", collation="ascii_bin"), *_MYSQL)
_TEXT = types.Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), *_MYSQL)
_SIMPLE: tuple[tuple[Callable[[Any], bool], TypeEngine[Any]], ...] = (
    (pa.types.is_boolean, types.Boolean(create_constraint=False)),
    (pa.types.is_int64, types.BigInteger()),
    (pa.types.is_integer, types.Integer()),
    (pa.types.is_floating, types.Double()),
    (pa.types.is_date, types.Date()),
    (pa.types.is_binary, types.LargeBinary().with_variant(mysql.LONGBLOB(), *_MYSQL)),
    (pa.types.is_large_binary, types.LargeBinary().with_variant(mysql.LONGBLOB(), *_MYSQL)),
)


def database_type(name: str, type_: Any) -> TypeEngine[Any]:
    """Return the column type for an Arrow type, the same for every database except for its variants."""
    if name == KEY_COLUMN:
        return _KEY
    if pa.types.is_decimal(type_):
        exact = types.Numeric(type_.precision, type_.scale, asdecimal=True)
        return exact.with_variant(types.Text(), "sqlite")
    if pa.types.is_timestamp(type_):
        return (
            types.DateTime()
            .with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
            .with_variant(mysql.DATETIME(fsp=6), *_MYSQL)
        )
    return next((simple_type for is_it, simple_type in _SIMPLE if is_it(type_)), _TEXT)


def converter(type_: Any, dialect: str) -> Convert | None:
    """Return the function to apply to values that are not NULL; None: they are written as they are."""
    if pa.types.is_nested(type_):
        return _as_json
    if pa.types.is_timestamp(type_) and dialect != "postgresql":
        return lambda value: value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if pa.types.is_decimal(type_) and dialect == "sqlite":
        return lambda value: f"{value:f}"
    return None


def _as_json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case tuple():  # an entry of a map
            return [_plain(part) for part in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal():
            return f"{value:f}"
        case None | bool() | int() | float() | str():
            return value
    return value.isoformat()
