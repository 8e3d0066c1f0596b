"""Messages in the wire format of schema registries, as the JSON that Kafka Connect's converter would have written.

The format: a byte 0, the schema's number in four bytes (the most significant first), then the message. What begins
otherwise is left as it is, so that a topic may change from JSON to Avro. Owns decoding, and why a message cannot be.
https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format

In the JSON the `schema` block has, instead of thousands of characters, a reference to the schema: `registry:7`. A
message whose schema is a JSON Schema is JSON already, as Connect's converter writes it with `schemas.enable: false`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from sqlmesh_like.cdc.formats.source_types import sql_literal
from sqlmesh_like.cdc.registry.frames import NO_KEY, NONE, Frame, GlueFrame, NumberFrame
from sqlmesh_like.cdc.registry.message_schema import ENTRY_KEY, ENTRY_VALUE, JsonSchema, MessageSchema
from sqlmesh_like.cdc.registry.protobuf_messages import ProtobufMessages
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema
from sqlmesh_like.cdc.registry.schema_registry import KnownSchemas, SchemaRegistry
from sqlmesh_like.cdc.registry.wire_header import (
    ELSEWHERE,
    END,
    FAULT,
    INVALID_UTF8,
    RAW_KEY,
    cannot_be_decoded,
    payload_start,
    why_unknown,
)
from sqlmesh_like.cdc.schema.limits import MAX_EVENT, is_short
from sqlmesh_like.project.nodes import CdcFormat
from sqlmesh_like.spark.frames.cached_frame import cached

_SCHEMAS = {"value": "value_schema", "log_key": "key_schema"}
"""Columns of messages, and those of their schemas' numbers."""
_UNKNOWN_CHARACTER = "\N{REPLACEMENT CHARACTER}"


@contextmanager
def decoded_lines(lines: DataFrame, registry: SchemaRegistry, form: CdcFormat) -> Iterator[DataFrame]:
    """Lines whose messages and keys are JSON, with `FAULT`; usable while the context is open.

    Raises IngestError where the registry does not answer.
    """
    # A letter's key: bytes are kept as text.
    raw = f"cast(unbase64(substr(log_key, {len(RAW_KEY) + 1})) as string)"
    framed = lines.withColumn("log_key", F.expr(f"if(startswith(log_key, '{RAW_KEY}'), {raw}, log_key)"))
    frame = registry.frame
    numbers = (f"{_key(column, frame)} as {name}" for column, name in _SCHEMAS.items())
    held = cached(framed.selectExpr("*", *numbers))
    try:
        schemas = registry.schemas(_numbers(held.frame, frame))
        yield _decode_lines(held.frame, lines.columns, schemas, frame, needs_key=form != "debezium")
    finally:
        held.release()


def _key(column: str, frame: Frame) -> str:
    """Spark SQL of the key of a message's schema, NULL where it has none; `NO_KEY` where the message is too short."""
    return f"if({frame.is_framed.format(column)} and {is_short(column)}, {frame.key_sql.format(column)}, null)"


def _numbers(lines: DataFrame, frame: Frame) -> Sequence[int]:
    """The numbers of the schemas of lines, the most frequent first."""
    each = lines.select(F.explode(F.array("value_schema", "key_schema")).alias("key")).where(f"key != '{NO_KEY}'")
    counts = {frame.number_of(row[0]): row[1] for row in each.groupBy("key").count().collect()}
    return sorted(counts, key=lambda number: (-counts[number], number))


def _decode_lines(
    lines: DataFrame, columns: Sequence[str], schemas: KnownSchemas, frame: Frame, *, needs_key: bool
) -> DataFrame:
    """`needs_key`: whether a message without a value means something by its key."""
    read = lines.withColumns(
        {
            "_value": _message("value", schemas, frame, is_value=True),
            "_key": _message("log_key", schemas, frame, is_value=False),
        }
    )
    key = f"if(_key.fault is null, _key.text, concat('{RAW_KEY}', base64(cast(log_key as binary))))"
    of_key = "if(value is null, concat('its key: ', _key.fault), null)" if needs_key else "null"
    is_glue = f"value_schema is null and {GlueFrame.is_framed.format('value')}"
    glue = f"if({is_glue}, {sql_literal(ELSEWHERE)}, null)"
    new = {"value": "if(_value.fault is null, _value.text, value)", "log_key": key}
    return read.selectExpr(
        *(f"{new.get(name, name)} as {name}" for name in columns),
        f"cast(coalesce(_value.fault, {of_key}, {glue}) as string) as {FAULT}",
    )


def _message(column: str, schemas: KnownSchemas, frame: Frame, *, is_value: bool) -> Column:
    """A message's JSON `text` and `fault`, as a struct. Of a value the JSON refers to its schema."""
    key = F.col("value_schema" if is_value else "key_schema")
    in_protobuf = _protobuf(F.col(column), key, schemas, frame, is_value=is_value)
    body = _body(F.col(column).cast("binary"), frame)
    keys = {frame.key(number): number for number in schemas.known}

    def read(one: str) -> Column:
        schema, name = schemas.known[keys[one]], frame.name(keys[one])
        match schema:
            case str():
                return _result(fault=F.lit(f"schema {name} {schema}"))
            case ProtobufSchema():
                return in_protobuf
            case JsonSchema():
                return _json(body, name)
        return _by_schema(body, name, schema, is_value=is_value)

    why = F.when(key == frame.key(0), F.lit(why_unknown(0, frame, schemas))).otherwise(F.lit(schemas.unknown))
    named = F.expr(frame.name_sql.format("value_schema" if is_value else "key_schema"))
    unknown = _result(fault=F.concat(F.lit("schema "), named, F.lit(" "), why))
    short = _result(fault=F.lit(frame.no_number))
    framed = F.when(key == NO_KEY, short).otherwise(_choice(key, sorted(keys), read, unknown))
    return F.when(key.isNull(), _result(F.col(column))).otherwise(framed)


def _body(message: Column, frame: Frame) -> Column:
    """What follows the header; NULL where it cannot be unpacked, for which Spark has no function of its own."""
    if isinstance(frame, NumberFrame):
        return F.substring(message, frame.size + 2, MAX_EVENT)

    def unpacked(data: bytes | None) -> bytes | None:
        return None if data is None or frame.number(bytes(data)) in (None, NONE) else frame.body(bytes(data))

    return F.udf(unpacked, "binary")(message)


def _protobuf(column: Column, key: Column, schemas: KnownSchemas, frame: Frame, *, is_value: bool) -> Column:
    """A message's JSON and fault, from a process of Python beside each executor; NULL for those of other schemas.

    One function for all schemas: Spark calls a function of Python with each row, whatever decides about its result.
    """
    if not schemas.protobuf:
        return _result()
    messages = ProtobufMessages(schemas.protobuf, is_value=is_value)

    def read(key: str | None, message: bytes | None) -> tuple[str | None, str | None] | None:
        number = None if key is None or key == NO_KEY else frame.number_of(key)
        if number is None or message is None or number not in messages.readers:
            return None
        return messages.read(number, frame.body(bytes(message)) or b"")

    return F.udf(read, "struct<text: string, fault: string>")(key, column.cast("binary"))


def _choice(key: Column, among: Sequence[str], read: Callable[[str], Column], other: Column) -> Column:
    """What `read` gives for a key, by halves: of many keys, which are in order, a row is compared with few."""
    if not among:
        return other
    if len(among) == 1:
        return F.when(key == among[0], read(among[0])).otherwise(other)
    middle = len(among) // 2
    upper = _choice(key, among[middle:], read, other)
    return F.when(key < among[middle], _choice(key, among[:middle], read, other)).otherwise(upper)


def _json(body: Column, name: str) -> Column:
    """A message that is JSON behind its header."""

    def result(text: Column) -> Column:
        fault = F.when(body.isNull(), F.lit(cannot_be_decoded(name))).otherwise(F.lit(INVALID_UTF8))
        return F.when(F.encode(text, "UTF-8") == body, _result(text)).otherwise(_result(fault=fault))

    return _with(F.decode(body, "UTF-8"), result)


def _by_schema(body: Column, name: str, schema: MessageSchema, *, is_value: bool) -> Column:
    end = {"name": "end", "type": {"type": "fixed", "name": "last", "size": len(END)}}
    record = {"type": "record", "name": "message", "fields": [json.loads(schema.avro), end]}
    row = from_avro(F.concat(body, F.lit(bytearray(END))), json.dumps(record), {"mode": "PERMISSIVE"})
    fault = F.lit(cannot_be_decoded(name))

    def result(decoded: Column) -> Column:
        value = decoded["value"] if schema.cast is None else decoded["value"].cast(schema.cast)
        text = F.to_json(value, {"ignoreNullFields": "false"})
        if schema.has_entries:
            text = F.regexp_replace(text, _ENTRY, "[$1,$2]")
        return F.when(decoded["end"] == F.lit(bytearray(END)), _as_text(text)).otherwise(_result(fault=fault))

    def _as_text(text: Column) -> Column:
        start, end = (payload_start(name), "}") if is_value else ("", "")
        return _with(text, lambda t: F.when(_has_invalid(t, body), _result(fault=F.lit(INVALID_UTF8)))
                     .otherwise(_result(F.concat(F.lit(start), t, F.lit(end)))))  # fmt: skip

    return _with(row, result)


_SCALAR = r'("(?:[^"\\]|\\.)*+"|[^\s,:\[\]{}"]++)'
_ENTRY = rf'\{{"{ENTRY_KEY}":{_SCALAR},"{ENTRY_VALUE}":{_SCALAR}\}}'
"""An entry in JSON. No text has this in it: its quotation marks are escaped."""


def _has_invalid(text: Column, body: Column) -> Column:
    """Whether a text was decoded from bytes that are not UTF-8: it has more replacement characters than they have."""
    sign = F.lit(_UNKNOWN_CHARACTER)
    size = len(_UNKNOWN_CHARACTER.encode())
    raw = body.cast("string")
    of_text = F.length(text) - F.length(F.replace(text, sign, F.lit("")))
    of_bytes = (F.octet_length(raw) - F.octet_length(F.replace(raw, sign, F.lit("")))) / size
    return F.contains(text, sign) & (of_text > of_bytes)


def _with(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use` of a value that is computed once."""
    return F.transform(F.array(value), use)[0]


def _result(text: Column | None = None, fault: Column | None = None) -> Column:
    none = F.lit(None).cast("string")
    return F.struct((none if text is None else text).alias("text"), (none if fault is None else fault).alias("fault"))
