"""Debezium's JSON change events. Owns the envelope, its `schema` block and the kinds of message; knows no engine.

Format: https://debezium.io/documentation/reference/stable/connectors/mysql.html#mysql-events, and the same of the
connectors for PostgreSQL, SQL Server and MariaDB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from sqlmesh_like.cdc.formats.message import CORRUPT, Message, MessageDialect, is_tombstone, names_in, parsed_message
from sqlmesh_like.cdc.formats.row_images import IMAGES
from sqlmesh_like.cdc.formats.source_types import Encoding, SourceField, sql_literal

_TEXTS = (
    *("op STRING", "before STRING", "after STRING"),
    "source STRUCT<db: STRING, `schema`: STRING, `table`: STRING>",
    *("ddl STRING", "status STRING", "ts_ms STRING"),
)
_ENVELOPE = f"schema STRING, payload STRUCT<{', '.join(text.replace(' ', ': ', 1) for text in _TEXTS)}>, "
_ENVELOPE += f"{', '.join(_TEXTS)}, {CORRUPT} STRING"

DEBEZIUM_KINDS = {"c": "upsert", "u": "upsert", "r": "upsert", "d": "delete", "t": "truncate", "m": "skip"}

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
    "io.debezium.data.VariableScaleDecimal": ("string", Encoding.OWN_SCALE),
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
_MOMENTS = {name for name, (kind, _) in _BY_NAME.items() if kind == "timestamp"}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_BITS = "io.debezium.data.Bits"


def debezium_envelope(line: str) -> dict[str, str]:
    """Spark SQL of the members that every event has, in order of evaluation: see `MessageDialect`."""
    return {
        "_message": parsed_message(line, _ENVELOPE),
        "is_enveloped": "_message.payload is not null and _message.op is null",
        "_body": "if(is_enveloped, _message.payload, struct("
        + ", ".join(f"_message.{name}" for name in ("op", "before", "after", "source", "ddl", "status", "ts_ms"))
        + "))",
        "op": "_body.op",
        "database": "_body.source.db",
        "source_schema": "_body.source.`schema`",
        "source_table": "_body.source.`table`",
        "schema_text": "if(is_enveloped, get_json_object(_message.schema, '$.fields'), null)",
        "message": f"if(is_enveloped, {sql_literal(ENVELOPED)}, {sql_literal(PLAIN)})",
        "reason": debezium_reason(line),
        "kind": f"case when {is_tombstone(line)} then 'tombstone' when reason is not null then 'bad' "
        f"when _body.op is null then 'skip' {_kind_cases()} end",
    }


def _kind_cases() -> str:
    return " ".join(
        f"when _body.op = {sql_literal(op)} then {sql_literal(kind)}" for op, kind in DEBEZIUM_KINDS.items()
    )


def debezium_reason(line: str) -> str:
    """Spark SQL: why a line is malformed, or NULL. Heartbeats, DDL and transaction messages lack `op` and rows."""
    no_row = (
        "_body.op is null and _body.before is null and _body.after is null"
        " and coalesce(_body.ddl, _body.status, if(_body.source is null, _body.ts_ms, null)) is not null"
    )
    known = ", ".join(map(sql_literal, DEBEZIUM_KINDS))
    image = "if(_body.op = 'd', _body.before, _body.after)"
    return (
        f"case when {is_tombstone(line)} then null "
        f"when _message is null or _message.{CORRUPT} is not null then 'not a JSON object of a change event' "
        f"when {no_row} then null "
        "when _body.op is null then 'no `op`: not a Debezium change event' "
        f"when _body.op not in ({known}) then concat('unknown op `', _body.op, '`') "
        "when _body.op = 'm' then null "
        "when coalesce(source_table, '') = '' then 'no `source.table`' "
        "when _body.op = 't' then null "
        f"when {image} is null then concat('op `', _body.op, '` without ', if(_body.op = 'd', '`before`', '`after`')) "
        f"when left(ltrim({image}), 1) != '{{' then concat(if(_body.op = 'd', '`before`', '`after`'), ' is not a row') "
        "end"
    )


def schema_fields(schema_text: str) -> tuple[SourceField, ...]:
    """The columns that the `fields` of a `schema` block (JSON) state for the row images; empty where none does.

    >>> block = '[{"field": "after", "type": "struct", "fields": [{"field": "id", "type": "int32"}]}]'
    >>> schema_fields(block)[0].type
    'int'
    """
    blocks = json.loads(schema_text)
    images = [block for block in blocks if isinstance(block, dict) and block.get("field") in IMAGES]
    entries: dict[str, SourceField] = {}
    for block in images:
        for column in block.get("fields") or ():
            entries.setdefault(str(column["field"]), replace(_field(column), default=_default(column)))
    return tuple(entries.values())


def _default(column: Mapping[str, object]) -> str | None:
    """The stated default, spelt like a value. Debezium states 1970 for CURRENT_TIMESTAMP, which is left out."""
    value, logical = column.get("default"), str(column.get("name") or "")
    if value is None or (logical in _MOMENTS and value in (0, "1970-01-01T00:00:00Z")):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _field(column: Mapping[str, object]) -> SourceField:
    name, kind, logical = str(column["field"]), str(column.get("type")), str(column.get("name") or "")
    if logical == _DECIMAL:
        return _decimal(name, column.get("parameters"))
    if logical == _BITS:
        return _bits(name, column.get("parameters"))
    spark_type, encoding = _BY_NAME.get(logical) or _BY_TYPE.get(kind) or ("string", Encoding.PLAIN)
    return SourceField(name, spark_type, encoding)


def _decimal(name: str, parameters: object) -> SourceField:
    given = parameters if isinstance(parameters, dict) else {}
    scale = int(given.get("scale") or 0)
    precision = max(int(given.get("connect.decimal.precision") or 38), scale)
    if precision > 38:
        return SourceField(name, "string", Encoding.BASE64_DECIMAL, scale)
    return SourceField(name, f"decimal({precision},{scale})", Encoding.BASE64_DECIMAL, scale)


def _bits(name: str, parameters: object) -> SourceField:
    """A column of bit strings, read as unsigned numbers; strings longer than 64 bits stay bytes."""
    length = int(parameters.get("length") or 0) if isinstance(parameters, dict) else 0
    if not 0 < length <= 64:
        return SourceField(name, "binary", Encoding.BASE64)
    return SourceField(name, "bigint" if length < 64 else "decimal(20,0)", Encoding.BITS)


PLAIN, ENVELOPED = "debezium", "debezium in payload"
DEBEZIUM_MESSAGES: Mapping[str, Message] = {
    PLAIN: Message("pair", (), "after", "before", fields=schema_fields, marks_unavailable=True),
    ENVELOPED: Message("pair", ("payload",), "after", "before", fields=schema_fields, marks_unavailable=True),
}
_ROUTERS = "^__dbz__"
_PAYLOAD = "get_json_object(log_key, '$.payload')"
DEBEZIUM_KEY = f"coalesce({names_in(_PAYLOAD, _ROUTERS)}, {names_in('log_key', _ROUTERS)})"
"""Spark SQL of the key columns, with or without a schema, less the one that Debezium's topic router adds."""
MEMBERS = "concat_ws('\\n', json_object_keys(_body.before), json_object_keys(_body.after))"
DEBEZIUM = MessageDialect(debezium_envelope, DEBEZIUM_KEY, MEMBERS)
