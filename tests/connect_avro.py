"""Kafka Connect's Avro form of events whose JSON form is known: the mapping of Confluent's `AvroData`, for tests.

Source: `AvroData.fromConnectSchema` and `fromConnectData` in https://github.com/confluentinc/schema-registry
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Mapping
from typing import Any

import fastavro

_KINDS = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_LOGICAL = {"Date": "date", "Time": "time-millis", "Timestamp": "timestamp-millis"}
_CONNECT = "org.apache.kafka.connect.data."


def framed(number: int, schema: Any, value: Any) -> bytes:
    """A message in the wire format of registries. `schema`: Avro's."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return struct.pack(">bI", 0, number) + out.getvalue()


class AvroConverter:
    """Converts the `schema` blocks of Connect's JSON; a named struct that occurs again is referred to by its name."""

    def __init__(self, *, meta_data: bool = True) -> None:
        self.meta_data = meta_data
        self.named: set[str] = set()
        self.unnamed = 0

    def schema(self, block: Mapping[str, Any]) -> Any:
        base = self._base(block)
        if not block.get("optional"):
            return base
        return [base, "null"] if block.get("default") is not None else ["null", base]

    def _base(self, block: Mapping[str, Any]) -> Any:
        kind, name = block["type"], block.get("name")
        if kind == "struct":
            return self._record(block)
        base: dict[str, Any] = {"type": _KINDS.get(kind, kind)}
        if kind == "array":
            base["items"] = self.schema(block["items"])
        if kind == "map" and "keys" in block:
            fields = [{"name": name, "type": self.schema(block[f"{name}s"])} for name in ("key", "value")]
            entry = {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro", "fields": fields}
            base |= {"type": "array", "items": {**entry, "connect.internal.type": "MapEntry"}}
        elif kind == "map":
            base["values"] = self.schema(block["values"])
        if kind in ("int8", "int16") and self.meta_data:
            base["connect.type"] = kind
        parameters = block.get("parameters") or {}
        if self.meta_data:
            base |= {f"connect.{key}": block[key] for key in ("version", "parameters", "name") if block.get(key)}
            if block.get("default") is not None:
                base["connect.default"] = _default(block)
        if name == _CONNECT + "Decimal":
            scale, precision = int(parameters["scale"]), int(parameters.get("connect.decimal.precision", 64))
            base |= {"logicalType": "decimal", "scale": scale, "precision": precision}
        elif str(name).startswith(_CONNECT):
            base["logicalType"] = _LOGICAL[str(name).removeprefix(_CONNECT)]
        return base["type"] if set(base) == {"type"} else base

    def _record(self, block: Mapping[str, Any]) -> Any:
        full = block.get("name")
        if not full:
            full = "io.confluent.connect.avro.ConnectDefault" + (str(self.unnamed + 1) if self.unnamed else "")
            self.unnamed += 1
        elif full in self.named:
            return full
        self.named.add(full)
        namespace, _, name = full.rpartition(".")
        fields = []
        for each in block["fields"]:
            field = {"name": each["field"], "type": self.schema(each)}
            if each.get("default") is not None:
                field["default"] = _default(each)
            elif each.get("optional"):
                field["default"] = None
            fields.append(field)
        record = {"type": "record", "name": name, "fields": fields}
        record |= {"namespace": namespace} if namespace else {}
        return record | ({"connect.name": full} if self.meta_data and block.get("name") else {})


def avro_value(block: Mapping[str, Any], value: Any) -> Any:
    """A value of Connect's JSON as fastavro writes it."""
    if value is None:
        return None
    match block["type"]:
        case "struct":
            return {each["field"]: avro_value(each, value.get(each["field"])) for each in block["fields"]}
        case "array":
            return [avro_value(block["items"], each) for each in value]
        case "map" if "keys" in block:
            return [{"key": key, "value": avro_value(block["values"], each)} for key, each in value]
        case "map":
            return {key: avro_value(block["values"], each) for key, each in value.items()}
        case "bytes":
            return base64.b64decode(value)
        case _:
            return value


def physical(schema: Any) -> Any:
    """An Avro schema without logical types: fastavro then writes the values that they are encoded as."""
    if isinstance(schema, list):
        return [physical(each) for each in schema]
    if isinstance(schema, dict):
        return {key: physical(each) for key, each in schema.items() if key not in ("logicalType", "scale", "precision")}
    return schema


def completed(block: Mapping[str, Any], *values: Any) -> dict[str, Any]:
    """A block in which structs, lists and maps state what is in them, as far as these values show it."""
    seen = [value for value in values if value is not None]
    kind, name = block["type"], str(block.get("name"))
    if kind == "struct" and "fields" not in block:
        names = dict.fromkeys(key for value in seen for key in value)
        inner = [_guessed(key, [value.get(key) for value in seen], name) for key in names]
        return {"optional": True, **block, "fields": inner}
    if kind == "struct":
        stated = [each["field"] for each in block["fields"]]
        fields = [completed(each, *(value.get(each["field"]) for value in seen)) for each in block["fields"]]
        more = dict.fromkeys(key for value in seen for key in value if key not in stated)
        fields += [_guessed(key, [value.get(key) for value in seen], name) for key in more]
        return {"optional": True, **block, "fields": fields}
    if kind == "array" and "items" not in block:
        return {"optional": True, **block, "items": _guessed("", [each for value in seen for each in value], name)}
    if kind == "map" and "values" not in block:
        return {
            "optional": True,
            **block,
            "values": _guessed("", [each for value in seen for each in value.values()], name),
        }
    return {"optional": True, **block}


def _guessed(field: str, values: list[Any], within: str) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "int64", float: "double", str: "string", dict: "struct", list: "array"}
    kind = next((kinds[type(value)] for value in values if value is not None), "string")
    if field == "wkb" or (field == "value" and within.endswith("VariableScaleDecimal")):
        kind = "bytes"
    named = {"field": field} if field else {}
    if within.endswith("SparseDoubleVector") and field == "vector":
        return {"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}, "optional": True, **named}
    return completed({"type": kind, "optional": True, **named}, *values)


def _default(block: Mapping[str, Any]) -> Any:
    value = block["default"]
    return base64.b64decode(value).decode("latin-1") if block["type"] == "bytes" else value
