"""The event that deletes a row of which canonical texts are known. Owns how these are written as Debezium would.

The event has a schema, by the types that the lake has: without one its integers would widen the columns to `bigint`.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from decimal import Context, Decimal

from sqlmesh_like.cdc.formats.source_types import decimal_parts
from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind, moment_text
from sqlmesh_like.cdc.sources.database.server import Table

_TYPES = {"int": "int32", "bigint": "int64", "boolean": "boolean", "binary": "bytes"}
_ALL_DIGITS = Context(prec=100)
_SEMANTIC = {"date": "io.debezium.time.IsoDate", "timestamp": "io.debezium.time.ZonedTimestamp"}


def delete_event(origin: Table, database: str, row: Mapping[str, tuple[CanonicalColumn, str | None]]) -> bytes:
    """The line of an event that deletes a row. `row`: the lake's columns and texts, by the names in the database."""
    source = {"db": database, "schema": origin.schema, "table": origin.name}
    before = {name: _json_value(column, text) for name, (column, text) in row.items()}
    event = {"op": "d", "before": before, "after": None, "source": source, "ts_ms": time.time_ns() // 10**6}
    fields = [_field(name, column) for name, (column, _) in row.items()]
    image = {"type": "struct", "fields": fields, "optional": True, "field": "before"}
    return json.dumps({"schema": {"type": "struct", "fields": [image]}, "payload": event}).encode() + b"\n"


def _field(name: str, column: CanonicalColumn) -> dict[str, object]:
    """The column in a schema block, of the type that the lake has.

    >>> _field("day", CanonicalColumn("day", Kind.DATE, "date"))
    {'field': 'day', 'optional': True, 'type': 'string', 'name': 'io.debezium.time.IsoDate'}
    """
    field: dict[str, object] = {"field": name, "optional": True, "type": _TYPES.get(column.lake, "string")}
    if (digits := decimal_parts(column.lake)) is not None:
        parameters = {"scale": str(digits[1]), "connect.decimal.precision": str(digits[0])}
        return {**field, "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": parameters}
    return {**field, "name": _SEMANTIC[column.lake]} if column.lake in _SEMANTIC else field


def _json_value(column: CanonicalColumn, text: str | None) -> object:
    """The value of a canonical text as an event has it.

    >>> _json_value(CanonicalColumn("id", Kind.WHOLE, "bigint"), "7")
    7
    >>> _json_value(CanonicalColumn("at", Kind.MOMENT, "timestamp"), "1704067200000001")
    '2024-01-01T00:00:00.000001Z'
    >>> _json_value(CanonicalColumn("price", Kind.DECIMAL, "decimal(10,2)"), "-12.50")
    '+x4='
    >>> _json_value(CanonicalColumn("n", Kind.DECIMAL, "decimal(38,2)"), "9" * 36 + ".99") == _base64_of(10**38 - 1)
    True
    """
    if text is None:
        return None
    if (digits := decimal_parts(column.lake)) is not None:
        return _base64_of(int(Decimal(text).scaleb(digits[1], _ALL_DIGITS)))
    match column.kind:
        case Kind.WHOLE:
            return bool(int(text)) if column.lake == "boolean" else int(text)
        case Kind.MOMENT:
            return f"{moment_text(text).replace(' ', 'T')}Z"
        case Kind.BYTES:
            return base64.b64encode(bytes.fromhex(text)).decode()
    return text


def _base64_of(unscaled: int) -> str:
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()
