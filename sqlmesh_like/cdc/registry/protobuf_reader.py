"""Messages in Protobuf as JSON, as Kafka Connect's `ProtobufConverter` and its JSON converter would make of them.

Google's runtime decodes them; owns what their types mean in Connect's terms. Spark's executors and this process run the
same code. Mapping: `ProtobufData` of https://github.com/confluentinc/schema-registry, with three differences: a field
of a `oneof` stands beside the others, NULL where another is chosen; wrappers (`google.protobuf.Int64Value`) are values
that may be NULL; and numbers without a sign of 64 bits keep their value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

from sqlmesh_like.analyze.spark_types.java_numbers import shortest_double_text, shortest_float_text
from sqlmesh_like.cdc.registry.avro_schema import MAX_DEPTH, MAX_FIELDS
from sqlmesh_like.cdc.registry.json_texts import json_base64, json_string
from sqlmesh_like.cdc.registry.message_schema import SchemaError, UndecodableError
from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema

_Writer = Callable[[Any], str]
"""The JSON of a value that the runtime has read."""
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."
FIRST = (0,)
"""The place of a schema's first message."""
_MOST_INDEXES = 50
_FIELD_META = 1088
"""The number of Confluent's option that has a field's properties."""


@dataclass(frozen=True)
class _Type:
    """A type as Connect's JSON converter states it, and what writes its values."""

    block: Mapping[str, object]
    write: _Writer


@dataclass(frozen=True)
class _Message:
    """One kind of message: the `fields` of its block (JSON), and what reads it."""

    fields: str
    parse: Callable[[bytes], Any]
    write: _Writer


@dataclass(frozen=True)
class ProtobufReader:
    """Reads the messages of a schema, each kind of which is looked at once."""

    schema: ProtobufSchema
    _known: dict[tuple[int, ...], _Message] = field(default_factory=dict)

    def text(self, data: bytes) -> tuple[tuple[int, ...], str]:
        """The place of a message's type in its schema, and the message as JSON. `data`: what follows the number.

        Raises UndecodableError, and SchemaError for a type that Connect cannot write.
        """
        from google.protobuf.message import DecodeError

        path, body = _message_path(data)
        kind = self._kind(path)
        try:
            return path, kind.write(kind.parse(body))
        except (DecodeError, ValueError, OverflowError) as error:
            raise UndecodableError from error

    def fields(self, path: tuple[int, ...]) -> str:
        """The `fields` of the `schema` block that the JSON converter would write (JSON). Raises as `text` does."""
        return self._kind(path).fields

    def _kind(self, path: tuple[int, ...]) -> _Message:
        if path not in self._known:
            from google.protobuf import message_factory

            descriptor = self.schema.message(path)
            whole = _Blocks().message(descriptor, ())
            factory = message_factory.GetMessageClass(descriptor)
            self._known[path] = _Message(json.dumps(whole.block["fields"]), factory.FromString, whole.write)
        return self._known[path]


def _message_path(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Where a message's type stands in its schema, which comes first, and the message. No places mean the first.

    >>> _message_path(bytes([0, 7])), _message_path(bytes([4, 2, 0, 7]))
    (((0,), b'\\x07'), ((1, 0), b'\\x07'))
    """
    count, at = _number(data, 0)
    if not 0 <= count <= _MOST_INDEXES:
        raise UndecodableError
    path = []
    for _ in range(count):
        place, at = _number(data, at)
        path.append(place)
    return tuple(path) or FIRST, data[at:]


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 35:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
    raise UndecodableError


@dataclass
class _Blocks:
    count: int = 0

    def message(self, descriptor: Any, path: tuple[str, ...], within: tuple[str, ...] = ()) -> _Type:
        """A message as a struct. `path`: names of the fields around it; `within`: full names of the messages."""
        from google.protobuf.message import Message

        if descriptor.full_name in within or len(path) > MAX_DEPTH:
            raise SchemaError(f"contains itself, or too many levels at {'.'.join(path)}")
        inner = (*within, descriptor.full_name)
        if odd := next((each.name for each in descriptor.fields if hasattr(Message, each.name)), None):
            raise SchemaError(f"has a field named {odd}, which Google's runtime for Python cannot give")
        members = [(each, self._field(each, (*path, each.name), inner)) for each in descriptor.fields]
        blocks = [{**kind.block, "optional": True, "field": each.name} for each, kind in members]
        # Other names say nothing of what a value means.
        name = {"name": descriptor.full_name} if descriptor.full_name.startswith(_DEBEZIUM) else {}
        block = {"type": "struct", "fields": blocks, "optional": True, **name}
        steps = [(each.name, f"{',' if place else ''}{json_string(each.name)}:", kind.write, each.has_presence)
                 for place, (each, kind) in enumerate(members)]  # fmt: skip

        def write(value: Any) -> str:
            texts = (
                start + ("null" if may_lack and not value.HasField(name) else one(getattr(value, name)))
                for name, start, one, may_lack in steps
            )
            return "{" + "".join(texts) + "}"

        return _Type(block, write)

    def _field(self, each: Any, path: tuple[str, ...], within: tuple[str, ...]) -> _Type:
        self.count += 1
        if self.count > MAX_FIELDS:
            raise SchemaError(f"has more than {MAX_FIELDS:,} fields at {'.'.join(path)}")
        if not each.is_repeated:
            return self._value(each, path, within)
        if each.message_type is not None and each.message_type.GetOptions().map_entry:
            parts = each.message_type.fields_by_name
            return _map(*(self._value(parts[name], path, within) for name in ("key", "value")))
        item = self._value(each, path, within)
        block = {"type": "array", "items": item.block}
        return _Type(block, lambda values: f"[{','.join(map(item.write, values))}]")

    def _value(self, each: Any, path: tuple[str, ...], within: tuple[str, ...]) -> _Type:
        """One value of a field."""
        if each.enum_type is not None:
            names = {number: json_string(value.name) for number, value in each.enum_type.values_by_number.items()}
            return _Type({"type": "string"}, lambda value: names.get(value, f'"{value}"'))
        if each.message_type is None:
            return _plain(each)
        name = each.message_type.full_name
        if name == "confluent.type.Decimal":
            return _decimal(_properties(each))
        if name in _KNOWN:
            return _KNOWN[name]
        if (
            name.startswith("google.protobuf.")
            and name.endswith("Value")
            and "value" in each.message_type.fields_by_name
        ):
            own = _plain(each.message_type.fields_by_name["value"])
            return _Type(own.block, lambda value: own.write(value.value))
        return self.message(each.message_type, path, within)


def _map(key: _Type, value: _Type) -> _Type:
    block = {"type": "map", "keys": key.block, "values": value.block}
    if key.block["type"] == "string":
        return _Type(
            block,
            lambda entries: (
                "{" + ",".join(f"{key.write(name)}:{value.write(entries[name])}" for name in sorted(entries)) + "}"
            ),
        )
    return _Type(
        block, lambda entries: f"[{','.join(f'[{key.write(k)},{value.write(entries[k])}]' for k in sorted(entries))}]"
    )


def _unsigned_bytes(value: int) -> str:
    """A number as Connect's decimals are written."""
    return json_base64(value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _plain(each: Any) -> _Type:
    kind = {"type": _properties(each).get("connect.type", "")} if each.type in _INT32 else {}
    block, write = _PLAIN[each.type]
    return _Type({**block, **(kind if kind.get("type") in ("int8", "int16") else {})}, write)


_UINT64 = {
    "type": "bytes",
    "name": f"{_CONNECT}Decimal",
    "parameters": {"scale": "0", "connect.decimal.precision": "20"},
}
_INT32 = {5, 15, 17}
_PLAIN: Mapping[int, tuple[Mapping[str, object], _Writer]] = {
    1: ({"type": "double"}, shortest_double_text),
    2: ({"type": "float"}, shortest_float_text),
    **{kind: ({"type": "int64"}, str) for kind in (3, 7, 13, 16, 18)},
    **dict.fromkeys((4, 6), (_UINT64, _unsigned_bytes)),
    **{kind: ({"type": "int32"}, str) for kind in _INT32},
    8: ({"type": "boolean"}, lambda value: "true" if value else "false"),
    9: ({"type": "string"}, json_string),
    12: ({"type": "bytes"}, json_base64),
}  # fmt: skip
"""By the type's number in descriptors: https://protobuf.dev/reference/protobuf/google.protobuf/#field-kind"""


def _properties(each: Any) -> Mapping[str, str]:
    """The properties of a field that Confluent's converter notes in an option."""
    options = _options_class().FromString(each.GetOptions().SerializeToString())
    return {entry.key: entry.value for entry in options.meta.params}


@lru_cache(maxsize=1)
def _options_class() -> Any:
    """Options of a field as far as they are needed; those that schemas know may be others of the same name."""
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

    def member(name: str, number: int, of: str = "") -> dict[str, object]:
        kind = {"type": "TYPE_MESSAGE", "typeName": f".{of}"} if of else {"type": "TYPE_STRING"}
        return {"name": name, "number": number, "label": f"LABEL_{'REPEATED' if of == 'Entry' else 'OPTIONAL'}", **kind}

    fields = {
        "Entry": [member("key", 1), member("value", 2)],
        "Meta": [member("params", 2, "Entry")],
        "Options": [member("meta", _FIELD_META, "Meta")],
    }
    file = {
        "name": "options.proto",
        "syntax": "proto3",
        "messageType": [{"name": name, "field": own} for name, own in fields.items()],
    }
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(json_format.ParseDict(file, descriptor_pb2.FileDescriptorProto()).SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Options"))


def _decimal(properties: Mapping[str, str]) -> _Type:
    """Connect's decimal where its scale is noted, otherwise the one of Debezium that says it with each value."""
    scale = properties.get("scale", "")
    if not scale.lstrip("-").isdigit():
        block: dict[str, object] = {"type": "struct", "name": f"{_DEBEZIUM}data.VariableScaleDecimal", "fields": [
            {"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}]}  # fmt: skip
        return _Type(block, lambda value: f'{{"scale":{value.scale},"value":{json_base64(value.value)}}}')
    precision = properties.get("precision", "")
    known = {"connect.decimal.precision": precision} if precision.isdigit() and precision != "64" else {}

    def write(value: Any) -> str:
        if value.scale != int(scale):
            raise UndecodableError
        return json_base64(value.value)

    return _Type({"type": "bytes", "name": f"{_CONNECT}Decimal", "parameters": {"scale": scale, **known}}, write)


def _date(value: Any) -> str:
    return str((date(value.year, value.month, value.day) - date(1970, 1, 1)).days)


def _time(value: Any) -> str:
    """A time of day as texts of times are in tables: with thousandths, and more digits only where they count."""
    if not (0 <= value.hours < 24 and 0 <= value.minutes < 60 and 0 <= value.seconds < 60 and 0 <= value.nanos < 10**9):
        raise ValueError
    digits = next(count for count in (3, 6, 9) if value.nanos % 10 ** (9 - count) == 0)
    return f'"{value.hours:02}:{value.minutes:02}:{value.seconds:02}.{f"{value.nanos:09}"[:digits]}"'


def _micros(value: Any) -> str:
    """A moment in microseconds, rounded down as those in nanoseconds are."""
    return str(value.seconds * 10**6 + math.floor(value.nanos / 1000))


def _nanos(value: Any) -> str:
    nanos = value.seconds * 10**9 + value.nanos
    if not -(2**63) <= nanos < 2**63:
        raise ValueError
    return str(nanos)


_KNOWN: Mapping[str, _Type] = {
    "google.type.Date": _Type({"type": "int32", "name": f"{_CONNECT}Date"}, _date),
    "google.type.TimeOfDay": _Type({"type": "string"}, _time),
    "google.protobuf.Timestamp": _Type({"type": "int64", "name": f"{_DEBEZIUM}time.MicroTimestamp"}, _micros),
    "google.protobuf.Duration": _Type({"type": "int64", "name": f"{_DEBEZIUM}time.NanoDuration"}, _nanos),
}
