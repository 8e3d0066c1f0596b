"""Debezium's JSON change events. Owns the envelope, its `schema` block and the kinds of message; knows no engine.

Everything here is Spark SQL text or plain values, so decoding runs at Spark's speed and is testable without a JVM.
Format: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmesh_like.ingest.types import Encoding, Field, decoder, exact_type, literal, quoted
from sqlmesh_like.names import Schema

CORRUPT = "_corrupt"
IMAGES = ("before", "after")

_TEXTS = (
    *("op STRING", "before STRING", "after STRING", "source STRUCT<db: STRING, `table`: STRING>"),
    *("ddl STRING", "status STRING", "ts_ms STRING"),
)
_ENVELOPE = f"schema STRING, payload STRUCT<{', '.join(text.replace(' ', ': ', 1) for text in _TEXTS)}>, "
_ENVELOPE += f"{', '.join(_TEXTS)}, {CORRUPT} STRING"

KINDS = {"c": "upsert", "u": "upsert", "r": "upsert", "d": "delete", "t": "skip", "m": "skip"}

_BY_NAME: Mapping[str, tuple[str, Encoding]] = {
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
}
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
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


@dataclass(frozen=True)
class Shape:
    """How a group of events of one table is laid out: inside a `payload` or not, and its columns."""

    is_enveloped: bool
    fields: tuple[Field, ...]


def envelope(line: str) -> dict[str, str]:
    """Spark SQL, in order, that reads what every event has; each may use the ones before it.

    Adds `kind` (upsert, delete, skip, tombstone, bad), `reason` (of bad), `database`, `source_table`, `schema_text`
    (of the row images; NULL without a schema), `is_enveloped`.
    """
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', {literal(CORRUPT)})"
    return {
        "_message": f"from_json({line}, {literal(_ENVELOPE)}, {options})",
        "is_enveloped": "_message.payload is not null and _message.op is null",
        "_body": "if(is_enveloped, _message.payload, struct("
        + ", ".join(f"_message.{name}" for name in ("op", "before", "after", "source", "ddl", "status", "ts_ms"))
        + "))",
        "database": "_body.source.db",
        "source_table": "_body.source.`table`",
        "schema_text": "if(is_enveloped, get_json_object(_message.schema, '$.fields'), null)",
        "reason": _reason(line),
        "kind": f"case when {_is_tombstone(line)} then 'tombstone' when reason is not null then 'bad' "
        f"when _body.op is null then 'skip' {_kind_cases()} end",
    }


def _is_tombstone(line: str) -> str:
    """Debezium follows a delete with a message without value; a console consumer writes it as `null`."""
    return f"trim({line}) in ('', 'null')"


def _kind_cases() -> str:
    return " ".join(f"when _body.op = {literal(op)} then {literal(kind)}" for op, kind in KINDS.items())


def _reason(line: str) -> str:
    """Why a line cannot be taken in, or NULL. Heartbeats, DDL and transaction messages have no `op` and no row."""
    no_row = (
        "_body.op is null and _body.before is null and _body.after is null"
        " and coalesce(_body.ddl, _body.status, if(_body.source is null, _body.ts_ms, null)) is not null"
    )
    known = ", ".join(map(literal, KINDS))
    image = "if(_body.op = 'd', _body.before, _body.after)"
    return (
        f"case when {_is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a change event' "
        f"when {no_row} then null "
        "when _body.op is null then 'no `op`: not a Debezium change event' "
        f"when _body.op not in ({known}) then concat('unknown op `', _body.op, '`') "
        "when _body.op in ('t', 'm') then null "
        "when _body.source.`table` is null then 'no `source.table`' "
        f"when {image} is null then concat('op `', _body.op, '` without ', if(_body.op = 'd', '`before`', '`after`')) "
        "end"
    )


def schema_fields(schema_text: str) -> tuple[Field, ...]:
    """Columns that a `schema` block (its `fields`, as JSON) states for the row images; empty where it states none.

    >>> block = '[{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}]}]'
    >>> schema_fields(block)[0].type
    'int'
    """
    blocks = json.loads(schema_text)
    images = [block for block in blocks if isinstance(block, dict) and block.get("field") in IMAGES]
    found: dict[str, Field] = {}
    for block in images:
        for column in block.get("fields") or ():
            found.setdefault(str(column["field"]), _field(column))
    return tuple(found.values())


def _field(column: Mapping[str, object]) -> Field:
    name, kind, logical = str(column["field"]), str(column.get("type")), str(column.get("name") or "")
    if logical == _DECIMAL:
        return _decimal(name, column.get("parameters"))
    spark_type, encoding = _BY_NAME.get(logical) or _BY_TYPE.get(kind) or ("string", Encoding.PLAIN)
    return Field(name, spark_type, encoding)


def _decimal(name: str, parameters: object) -> Field:
    given = parameters if isinstance(parameters, dict) else {}
    scale = int(given.get("scale") or 0)
    precision = max(int(given.get("connect.decimal.precision") or 38), scale)
    if precision > 38:
        return Field(name, "string", Encoding.BASE64_DECIMAL, min(scale, 38))
    return Field(name, f"decimal({precision},{scale})", Encoding.BASE64_DECIMAL, scale)


def reads(shape: Shape) -> dict[str, str]:
    """Spark SQL for `t` (the images with every value as text) and `x` (plain decimals, every digit kept)."""
    exact = [(field.name, kind) for field in shape.fields if (kind := exact_type(field))]
    texts = [(field.name, "STRING") for field in shape.fields]
    found = {"t": _from_json(shape, texts)}
    return found | {"x": _from_json(shape, exact)} if exact else found


def _from_json(shape: Shape, columns: Sequence[tuple[str, str]]) -> str:
    image = f"STRUCT<{', '.join(f'{quoted(name)}: {kind}' for name, kind in columns)}>"
    both = ", ".join(f"{name}: {image}" for name in IMAGES)
    ddl = f"payload: STRUCT<{both}>" if shape.is_enveloped else both
    return f"from_json(value, {literal(f'STRUCT<{ddl}>')})" + (".payload" if shape.is_enveloped else "")


def image(shape: Shape, name: str, columns: Schema) -> str:
    """Spark SQL of one row image as a struct of these columns (NULL where the event has no such image)."""
    fields = {field.name.lower(): field for field in shape.fields}
    values = (
        f"{literal(column.name)}, {_value(fields.get(column.name.lower()), name) or f'cast(null as {column.type})'}"
        for column in columns
    )
    return f"if(t.{name} is null, null, named_struct({', '.join(values)}))"


def _value(field: Field | None, name: str) -> str | None:
    if field is None:
        return None
    return decoder(field, f"t.{name}.{quoted(field.name)}", f"x.{name}.{quoted(field.name)}")


def unreadable(shape: Shape) -> str:
    """Spark SQL that names the values which could not be read, or NULL; uses `t` and the typed `before` and `after`."""
    checks = [
        f"if(t.{name}.{column} is not null and {name}.{column} is null, concat('column ', {literal(column)}, "
        f"': cannot read ', left(t.{name}.{column}, 80), ' as {field.type}'), null)"
        for name in IMAGES
        for field in shape.fields
        if field.type != "string" or field.encoding is not Encoding.PLAIN
        for column in (quoted(field.name),)
    ]
    return f"nullif(concat_ws('; ', {', '.join(checks)}), '')" if checks else "cast(null as string)"
