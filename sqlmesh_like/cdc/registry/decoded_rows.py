"""Messages in the wire format of schema registries, decoded in this process: what `wire_format` does in Spark.

Owns the same columns, texts and faults over rows of Python. What is not certain to be Spark's raises NotProvenError.
"""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Undecoded, Value
from sqlmesh_like.cdc.registry.avro_reader import AvroReader
from sqlmesh_like.cdc.registry.frames import Frame, GlueFrame
from sqlmesh_like.cdc.registry.message_schema import InvalidTextError, JsonSchema, MessageSchema, UndecodableError
from sqlmesh_like.cdc.registry.protobuf_messages import ProtobufMessages
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema
from sqlmesh_like.cdc.registry.schema_registry import KnownSchemas, SchemaRegistry
from sqlmesh_like.cdc.registry.wire_header import (
    ELSEWHERE,
    FAULT,
    INVALID_UTF8,
    RAW_KEY,
    cannot_be_decoded,
    payload_start,
    why_unknown,
)
from sqlmesh_like.cdc.schema.limits import MAX_EVENT
from sqlmesh_like.project.nodes import CdcFormat

_MOST_BYTES = 64 * 1024**2


@dataclass(frozen=True)
class _Message:
    """The bytes of a message or key that begins as those with a schema do, and the schema's number, or `NONE`."""

    data: bytes
    number: int


@dataclass(frozen=True)
class _Decoded:
    """A message's JSON, or why there is none."""

    text: str | None = None
    fault: str | None = None


def decoded_rows(lines: RowFrame, registry: SchemaRegistry, form: CdcFormat) -> RowFrame:
    """Lines whose messages and keys are JSON, with `FAULT`.

    Raises IngestError where the registry does not answer, and NotProvenError.
    """
    frame = registry.frame
    value_at, key_at = lines.columns.index("value"), lines.columns.index("log_key")
    framed = [(_message(row[value_at], frame), _message(row[key_at], frame)) for row in lines.rows]
    counted = Counter(each.number for pair in framed for each in pair if each is not None and each.number >= 0)
    numbers = sorted(counted, key=lambda number: (-counted[number], number))
    decoder = _Decoder(registry.schemas(numbers), frame)
    rows = []
    for row, (message, key) in zip(lines.rows, framed, strict=True):
        new: list[Value] = [*row, None]
        if key is not None:
            of_key = decoder.read(key, is_value=False)
            new[key_at] = _raw(key.data) if of_key.text is None else of_key.text
            if row[value_at] is None and of_key.fault and form != "debezium":
                new[-1] = f"its key: {of_key.fault}"
        if message is not None:
            of_value = decoder.read(message, is_value=True)
            new[value_at] = row[value_at] if of_value.text is None else of_value.text
            new[-1] = of_value.fault
        elif GlueFrame().number(_bytes(row[value_at]) or b"") is not None:
            new[-1] = ELSEWHERE
        rows.append(new)
    return RowFrame((*lines.columns, FAULT), rows)


def _message(value: Value, frame: Frame) -> _Message | None:
    """The message or key, if it begins as those with a schema do."""
    data = _bytes(value)
    number = None if data is None else frame.number(data)
    if data is None or number is None:
        if data is not None and data.startswith(RAW_KEY.encode()):
            raise NotProvenError("a message that begins as a letter's key")
        return None
    if len(data) > MAX_EVENT:
        raise NotProvenError("a message that is too long")
    return _Message(data, number)


def _bytes(value: Value) -> bytes | None:
    if value is None or isinstance(value, Undecoded):
        return None if value is None else value.raw
    return str(value).encode()


def _raw(key: bytes) -> str:
    """A key that could not be decoded, in lines as Spark's `base64` writes them."""
    return RAW_KEY + base64.encodebytes(key).decode().rstrip("\n").replace("\n", "\r\n")


class _Decoder:
    def __init__(self, schemas: KnownSchemas, frame: Frame) -> None:
        self.schemas, self.frame = schemas, frame
        self.readers: dict[int, AvroReader] = {}
        self.values, self.keys = (ProtobufMessages(schemas.protobuf, is_value=is_value) for is_value in (True, False))
        self.size = 0

    def read(self, message: _Message, *, is_value: bool) -> _Decoded:
        number, name = message.number, self.frame.name(message.number) if message.number >= 0 else ""
        if number < 0:
            return _Decoded(fault=self.frame.no_number)
        schema = self.schemas.known.get(number)
        if schema is None:
            return _Decoded(fault=f"schema {name} {why_unknown(number, self.frame, self.schemas)}")
        if isinstance(schema, str):
            return _Decoded(fault=f"schema {name} {schema}")
        body = self._body(message)
        if body is None:
            return _Decoded(fault=cannot_be_decoded(name))
        match schema:
            case JsonSchema():
                try:
                    return _Decoded(body.decode())
                except UnicodeDecodeError:
                    return _Decoded(fault=INVALID_UTF8)
            case ProtobufSchema():
                return _Decoded(*(self.values if is_value else self.keys).read(number, body))
        return self._avro(schema, number, body, payload_start(name) if is_value else "")

    def _body(self, message: _Message) -> bytes | None:
        body = self.frame.body(message.data)
        self.size += len(body or b"")
        if self.size > _MOST_BYTES:
            raise NotProvenError(f"more than {_MOST_BYTES // 1024**2} MB of events, unpacked")
        return body

    def _avro(self, schema: MessageSchema, number: int, body: bytes, start: str) -> _Decoded:
        """`start`: what the JSON of a value begins with, before the message itself."""
        if number not in self.readers:
            self.readers[number] = AvroReader(schema)
        try:
            text = self.readers[number].text(body)
        except UndecodableError:
            return _Decoded(fault=cannot_be_decoded(self.frame.name(number)))
        except InvalidTextError:
            return _Decoded(fault=INVALID_UTF8)
        return _Decoded(f"{start}{text}}}" if start else text)
