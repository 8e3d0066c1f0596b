"""Events in Protobuf as a producer and its registry have them, beside their JSON form: a field of each type."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import json_format, message_factory

from sqlmesh_like.cdc.registry.protobuf_schema import ProtobufSchema

CONNECT, TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
FIELDS: Mapping[str, tuple[str, Any, Mapping[str, Any], Any]] = {
    "id": ("int32", 1, {"type": "int32"}, 1),
    "i": ("sint32", -7, {"type": "int32"}, -7),
    "l": ("int64", "-9007199254740993", {"type": "int64"}, -9007199254740993),
    "s": ("sfixed64", "5", {"type": "int64"}, 5),
    "u": ("uint32", 4294967295, {"type": "int64"}, 4294967295),
    "big": (
        *("uint64", "18446744073709551615"),
        {"type": "bytes", "name": CONNECT + "Decimal", "parameters": {"scale": "0", "connect.decimal.precision": "20"}},
        base64.b64encode(b"\0" + b"\xff" * 8).decode(),
    ),
    "d": ("double", 0.1, {"type": "double"}, 0.1),
    "f": ("float", 1.5, {"type": "float"}, 1.5),
    "flag": ("bool", True, {"type": "boolean"}, True),
    "text": ("string", 'ü"\\\n', {"type": "string"}, 'ü"\\\n'),
    "raw": ("bytes", "AP8=", {"type": "bytes"}, "AP8="),
    "kind": ("Kind", "PAID", {"type": "string"}, "PAID"),
    "tags": ("repeated string", ["a", "b"], {"type": "array", "items": {"type": "string"}}, ["a", "b"]),
    "hstore": ("map<string, string>", {"b": "2", "a": "1"}, {"type": "map", "keys": {"type": "string"},
               "values": {"type": "string"}}, {"a": "1", "b": "2"}),
    "place": ("Place", {"city": "x", "zip": 7}, {"type": "struct", "fields": [
              {"field": "city", "type": "string"}, {"field": "zip", "type": "int32"}]}, {"city": "x", "zip": 7}),
    "at": ("google.protobuf.Timestamp", "2019-07-09T02:28:57.123456Z",
           {"type": "int64", "name": TIME + "MicroTimestamp"}, 1562639337123456),
    "took": ("google.protobuf.Duration", "3.5s", {"type": "int64", "name": TIME + "NanoDuration"}, 3500000000),
    "many": ("google.protobuf.Int64Value", "12", {"type": "int64"}, 12),
    "name": ("google.protobuf.StringValue", "n", {"type": "string"}, "n"),
    "day": ("google.type.Date", {"year": 2017, "month": 9, "day": 15},
            {"type": "int32", "name": CONNECT + "Date"}, 17424),
    "time": ("google.type.TimeOfDay", {"hours": 4, "minutes": 5, "seconds": 11, "nanos": 789000000},
             {"type": "int32", "name": CONNECT + "Time"}, 14711789),
    "price": ("confluent.type.Decimal", {"value": "+y4=", "precision": 9, "scale": 2},
              {"type": "bytes", "name": CONNECT + "Decimal",
               "parameters": {"scale": "2", "connect.decimal.precision": "9"}}, "+y4="),
    "loose": ("confluent.type.Decimal", {"value": "MDk=", "scale": 3},
              {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "fields": [
               {"field": "scale", "type": "int32"}, {"field": "value", "type": "bytes"}]},
              {"scale": 3, "value": "MDk="}),
    "small": ("int32", 5, {"type": "int16"}, 5),
}  # fmt: skip
"""Of each column: its type in Protobuf, a value as Protobuf's JSON has it, its block in Connect, the value there."""
_OPTIONS = {
    "price": '[(confluent.field_meta) = {params: [{key: "precision", value: "9"}, {key: "scale", value: "2"}]}]',
    "small": '[(confluent.field_meta) = {params: [{key: "connect.type", value: "int16"}]}]',
}
_REPEATED = ("repeated ", "map<")
CHOSEN = {"field": "left", "type": "int32"}, {"field": "right", "type": "string"}
"""The members of a `oneof` that rows have, too."""


def schema_text(names: Sequence[str] = tuple(FIELDS)) -> str:
    """The file of a table's events, as a producer of change events would write it."""
    columns = "\n".join(
        f"    {'' if FIELDS[name][0].startswith(_REPEATED) or '.' in FIELDS[name][0] else 'optional '}"
        f"{FIELDS[name][0]} {name} = {place} {_OPTIONS.get(name, '')};"
        for place, name in enumerate(names, 1)
    )
    return f"""syntax = "proto3";
package shop.db;
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
message Other {{ message Inner {{ int32 x = 1; }} }}
message Envelope {{
  enum Kind {{ NONE = 0; PAID = 1; }}
  message Place {{ optional string city = 1; int32 zip = 2; }}
  message Value {{
{columns}
    oneof choice {{ int32 left = 101; string right = 102; }}
  }}
  message Source {{ optional string db = 1; optional string table = 2; }}
  Value before = 1;
  Value after = 2;
  Source source = 3;
  optional string op = 4;
  optional int64 ts_ms = 5;
}}
"""


def block(names: Sequence[str] = tuple(FIELDS)) -> dict[str, Any]:
    """The `schema` block of the same events in JSON."""
    columns = [{**FIELDS[name][2], "field": name, "optional": True} for name in names] + [*CHOSEN]
    rows = [{"type": "struct", "fields": columns, "field": image} for image in ("before", "after")]
    return {"type": "struct", "fields": rows}


def message(schema: ProtobufSchema, path: Sequence[int], body: Mapping[str, Any]) -> bytes:
    """A message of a type of the schema. `body`: in Protobuf's JSON form."""
    kind = message_factory.GetMessageClass(schema.message(path))
    pool = schema._pool[0]
    return bytes(json_format.ParseDict(dict(body), kind(), descriptor_pool=pool).SerializeToString())


def framed(number: int, path: Sequence[int], data: bytes) -> bytes:
    """A message with its header: the number of its schema, and the place of its type."""
    indexes = b"\0" if tuple(path) == (0,) else bytes([2 * len(path), *(2 * place for place in path)])
    return b"\0" + number.to_bytes(4, "big") + indexes + data


def rows_of(names: Sequence[str], at: int) -> dict[str, Any]:
    """A row's values: as Protobuf's JSON has them (`at` 1), or Connect's (3)."""
    return {name: FIELDS[name][at] for name in names}
