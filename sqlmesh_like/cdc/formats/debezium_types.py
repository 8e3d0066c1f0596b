"""The column types that Debezium's `schema` block states: each semantic type of Debezium 3 and of Kafka Connect.

Source: the data type mappings of the connectors for MySQL, MariaDB, PostgreSQL, SQL Server, Oracle and MongoDB,
https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types and the like, and
`SCHEMA_NAME` and `LOGICAL_NAME` in the connectors' source.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Context, Decimal

from sqlmesh_like.cdc.formats.encoding import Encoding
from sqlmesh_like.cdc.formats.row_images import IMAGES
from sqlmesh_like.cdc.formats.source_types import MAX_PRECISION, SourceField

_ENCODED: Mapping[str, tuple[str, Encoding]] = {
    "org.apache.kafka.connect.data.Date": ("date", Encoding.DAYS),
    "org.apache.kafka.connect.data.Time": ("string", Encoding.MILLIS_OF_DAY),
    "org.apache.kafka.connect.data.Timestamp": ("timestamp", Encoding.MILLIS),
    "io.debezium.time.Date": ("date", Encoding.DAYS),
    "io.debezium.time.Time": ("string", Encoding.MILLIS_OF_DAY),
    "io.debezium.time.MicroTime": ("string", Encoding.MICROS_OF_DAY),
    "io.debezium.time.NanoTime": ("string", Encoding.NANOS_OF_DAY),
    "io.debezium.time.Timestamp": ("timestamp", Encoding.MILLIS),
    "io.debezium.time.MicroTimestamp": ("timestamp", Encoding.MICROS),
    "io.debezium.time.NanoTimestamp": ("timestamp", Encoding.NANOS),
    "io.debezium.time.ZonedTimestamp": ("timestamp", Encoding.PLAIN),
    "io.debezium.time.IsoDate": ("date", Encoding.ISO_DATE),
    "io.debezium.time.IsoTime": ("string", Encoding.ISO_TIME),
    "io.debezium.time.IsoTimestamp": ("timestamp", Encoding.ISO_TIMESTAMP),
    "io.debezium.time.StructuredDate": ("date", Encoding.DATE_PARTS),
    "io.debezium.time.StructuredTime": ("string", Encoding.TIME_PARTS),
    "io.debezium.time.StructuredTimestamp": ("timestamp", Encoding.TIMESTAMP_PARTS),
    "io.debezium.time.StructuredZonedTime": ("string", Encoding.TIME_PARTS),
    "io.debezium.time.StructuredZonedTimestamp": ("timestamp", Encoding.TIMESTAMP_PARTS),
    "io.debezium.data.VariableScaleDecimal": ("string", Encoding.OWN_SCALE),
}
"""Semantic types whose values are encoded: the column's type, and how."""
_AS_THEY_ARE = {
    *("io.debezium.time.Year", "io.debezium.time.ZonedTime", "io.debezium.time.Interval"),
    *("io.debezium.time.MicroDuration", "io.debezium.time.NanoDuration", "io.debezium.time.StructuredDuration"),
    *("io.debezium.data.Enum", "io.debezium.data.EnumSet", "io.debezium.data.Json", "io.debezium.data.Uuid"),
    *("io.debezium.data.Xml", "io.debezium.data.Ltree", "io.debezium.data.Tsvector"),
    *(f"io.debezium.data.geometry.{shape}" for shape in ("Point", "Geometry", "Geography", "Line", "Circle")),
    *(f"io.debezium.data.{vector}" for vector in ("DoubleVector", "FloatVector", "SparseDoubleVector")),
    "io.debezium.data.SparseVector",  # its name in the documentation
}
"""Semantic types whose values are what their literal type says; structs and lists are kept as JSON."""
_BY_TYPE: Mapping[str, tuple[str, Encoding]] = {
    "int8": ("int", Encoding.PLAIN),
    "int16": ("int", Encoding.PLAIN),
    "int32": ("int", Encoding.PLAIN),
    "int64": ("bigint", Encoding.PLAIN),
    "float": ("float", Encoding.PLAIN),
    "float32": ("float", Encoding.PLAIN),
    "double": ("double", Encoding.PLAIN),
    "float64": ("double", Encoding.PLAIN),
    "boolean": ("boolean", Encoding.PLAIN),
    "bytes": ("binary", Encoding.BASE64),
}
_NESTED = {"struct": True, "array": True, "map": True, "string": False}
_ZONED = ("io.debezium.time.ZonedTimestamp", "io.debezium.time.StructuredZonedTimestamp")
_MOMENTS = {name for name, (kind, _) in _ENCODED.items() if kind == "timestamp"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_BITS = "io.debezium.data.Bits"


def schema_fields(schema_text: str) -> tuple[SourceField, ...]:
    """The columns that the `fields` of a `schema` block (JSON) state for the row images; empty where none does.

    >>> block = '[{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}]}]'
    >>> schema_fields(block)[0].type
    'int'
    """
    blocks = json.loads(schema_text, parse_float=Decimal)
    images = [block for block in blocks if isinstance(block, dict) and block.get("field") in IMAGES]
    entries: dict[str, SourceField] = {}
    for block in images:
        for column in block.get("fields") or ():
            entries.setdefault(str(column["field"]), schema_column(column))
    return tuple(entries.values())


def row_fields(schema_text: str, ignored: Collection[str] = ()) -> tuple[SourceField, ...]:
    """The columns that the `fields` of a `schema` block (JSON) state where the message is the row, less those ignored.

    >>> [field.name for field in row_fields('[{"field": "id", "type": "int32"}, {"field": "__op", "type": "string"}]')]
    ['id', '__op']
    """
    columns = json.loads(schema_text, parse_float=Decimal)
    return tuple(schema_column(column) for column in columns if column["field"] not in ignored)


def schema_column(column: Mapping[str, object]) -> SourceField:
    """The column that one of a schema's `fields` states."""
    return replace(_field(column), default=_default(column))


def _default(column: Mapping[str, object]) -> str | None:
    """The stated default, spelt like a value. Debezium states 1970 for CURRENT_TIMESTAMP, which is left out."""
    value, logical = column.get("default"), str(column.get("name") or "")
    if value is None or (logical in _MOMENTS and value in _BEGINNINGS):
        return None
    if logical == _DECIMAL and isinstance(value, int | Decimal):
        return _connect_decimal(Decimal(value), _scale(column.get("parameters")))
    return value if isinstance(value, str) else str(value) if isinstance(value, Decimal) else json.dumps(value)


def _connect_decimal(value: Decimal, scale: int) -> str:
    """A decimal as Connect encodes it, from the number that it writes with `decimal.format=NUMERIC`.

    >>> _connect_decimal(Decimal("12.34"), 2), _connect_decimal(Decimal(-1), 0)
    ('BNI=', '/w==')
    """
    unscaled = int(value.scaleb(scale, _ALL_DIGITS))
    return base64.b64encode(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)).decode()


_ALL_DIGITS = Context(prec=1_000)


_BEGINNINGS = (0, "1970-01-01T00:00:00Z")


def _field(column: Mapping[str, object]) -> SourceField:
    name, kind, logical = str(column["field"]), str(column.get("type")), str(column.get("name") or "")
    if logical == _DECIMAL:
        return _decimal(name, column.get("parameters"))
    if logical == _BITS:
        # A column of bit strings, read as unsigned numbers; strings longer than 64 bits stay bytes.
        parameters = column.get("parameters")
        length = int(parameters.get("length") or 0) if isinstance(parameters, dict) else 0
        if not 0 < length <= 64:
            return SourceField(name, "binary", Encoding.BASE64)
        return SourceField(name, "bigint" if length < 64 else "decimal(20,0)", Encoding.BITS)
    spark_type, encoding = _ENCODED.get(logical) or _BY_TYPE.get(kind) or ("string", Encoding.PLAIN)
    is_known = not logical or logical in _ENCODED or logical in _AS_THEY_ARE
    return SourceField(
        *(name, spark_type, encoding),
        is_nested=_NESTED.get(kind),
        unknown_type=None if is_known else logical,
        is_instant=spark_type in ("int", "bigint") or logical in _ZONED,
    )


def _decimal(name: str, parameters: object) -> SourceField:
    given, scale = parameters if isinstance(parameters, dict) else {}, _scale(parameters)
    stated = int(given.get("connect.decimal.precision") or MAX_PRECISION)
    # A negative scale (Oracle) counts the zeros before the point.
    precision = max(stated - min(scale, 0), scale)
    if precision > MAX_PRECISION:
        return SourceField(name, "string", Encoding.BASE64_DECIMAL, scale)
    return SourceField(name, f"decimal({precision},{max(scale, 0)})", Encoding.BASE64_DECIMAL, scale)


def _scale(parameters: object) -> int:
    return int(parameters.get("scale") or 0) if isinstance(parameters, dict) else 0
