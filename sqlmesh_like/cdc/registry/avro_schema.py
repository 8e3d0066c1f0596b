"""Avro schemas as Kafka Connect's converter (`AvroData`) writes them. Owns what they mean in Connect's terms; pure.

Connect keeps its own types in properties: `connect.name`, `connect.parameters`, `connect.type`. Without them (its
setting `connect.meta.data: false`, or another writer) Avro's logical types say what a value is.
Mapping: https://docs.confluent.io/platform/current/schema-registry/connect.html, and `AvroData` in its source.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.registry.message_schema import ENTRY_KEY, ENTRY_VALUE, MessageSchema, SchemaError

MAX_FIELDS = 20_000
"""Fields of a schema whose named types are written out where they are used: few types can be nested into very many."""
MAX_DEPTH = 50
_PLAIN: Mapping[str, tuple[str, str]] = {
    "boolean": ("boolean", "boolean"),
    "int": ("int32", "int"),
    "long": ("int64", "bigint"),
    "float": ("float", "float"),
    "double": ("double", "double"),
    "bytes": ("bytes", "binary"),
    "string": ("string", "string"),
}
"""Avro's primitive types: the name in Connect, the type in Spark."""
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
"""Unions of two numbers, and the type in which Spark reads both."""
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
_LOGICAL: Mapping[tuple[str, str], str] = {
    ("int", "date"): _CONNECT + "Date",
    ("int", "time-millis"): _CONNECT + "Time",
    ("long", "time-micros"): _DEBEZIUM + "MicroTime",
    ("long", "timestamp-millis"): _CONNECT + "Timestamp",
    ("long", "timestamp-micros"): _DEBEZIUM + "MicroTimestamp",
    ("long", "timestamp-nanos"): _DEBEZIUM + "NanoTimestamp",
    ("long", "local-timestamp-millis"): _CONNECT + "Timestamp",
    ("long", "local-timestamp-micros"): _DEBEZIUM + "MicroTimestamp",
    ("long", "local-timestamp-nanos"): _DEBEZIUM + "NanoTimestamp",
    ("string", "uuid"): "io.debezium.data.Uuid",
}
_DECIMAL = _CONNECT + "Decimal"
_UNKNOWN_PRECISION = 64
"""What the converter writes for a decimal whose precision the connector does not say."""
_ENTRY = "entry"
"""What stands for the type of a map's entry until the list around it is known to be that map."""
_USABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class _Type:
    """A type three times: as `connect` writes it in JSON, the Avro to `read` it by, and its type in Spark."""

    connect: dict[str, object]
    read: object
    spark: str


def avro_message_schema(text: str, references: Sequence[str] = ()) -> MessageSchema:
    """Describe a message by its Avro schema. `references`: schemas whose named types it uses, the innermost first.

    Raises SchemaError where it is not an Avro schema, or has what Connect cannot write.

    >>> record = '{"type": "record", "name": "a", "fields": [{"name": "id", "type": ["null", "long"]}]}'
    >>> avro_message_schema(record).fields
    '[{"type": "int64", "optional": true, "field": "id"}]'
    """
    reader = _SchemaReader()
    try:
        for reference in references:
            reader.collect(json.loads(reference), "")
        schema = json.loads(text) if text.lstrip()[:1] in '{["' else text.strip()
        reader.collect(schema, "")
        root = reader.convert(schema, "", ())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaError(f"is not an Avro schema that can be read ({type(error).__name__})") from error
    # A row that cannot be decoded is all NULL, so that an own field around it tells it from a row of NULL values.
    wrapper = {"name": "value", "type": root.read}
    cast = root.spark if reader.is_renamed else None
    return MessageSchema(json.dumps(root.connect), json.dumps(wrapper), cast, reader.has_entries)


@dataclass
class _SchemaReader:
    named: dict[str, tuple[Mapping[str, object], str]] = field(default_factory=dict)
    count: int = 0
    is_renamed: bool = False
    has_entries: bool = False

    def collect(self, schema: object, namespace: str) -> None:
        """Remember the named types in a schema."""
        if isinstance(schema, list):
            for branch in schema:
                self.collect(branch, namespace)
        if not isinstance(schema, dict):
            return
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            name, namespace = _full_name(schema, namespace)
            self.named[name] = (schema, namespace)
            for each in schema.get("fields", ()):
                self.collect(each["type"], namespace)
        elif kind in ("array", "map"):
            self.collect(schema["items" if kind == "array" else "values"], namespace)
        else:
            self.collect(kind, namespace)

    def convert(self, schema: object, namespace: str, path: tuple[str, ...], within: tuple[str, ...] = ()) -> _Type:
        """One type. `path`: names of the fields around it; `within`: full names of the records around it."""
        if isinstance(schema, list):
            return self._union(schema, namespace, path, within)
        if isinstance(schema, str):
            if schema in _PLAIN:
                return _primitive(schema, {})
            full = schema if "." in schema or f"{namespace}.{schema}" not in self.named else f"{namespace}.{schema}"
            definition, namespace = self.named[full]
            return self._named_type(definition, namespace, full, path, within)
        assert isinstance(schema, dict)
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            full, namespace = _full_name(schema, namespace)
            return self._named_type(schema, namespace, full, path, within)
        if kind in ("array", "map"):
            inner = self.convert(schema["items" if kind == "array" else "values"], namespace, path, within)
            part = "items" if kind == "array" else "values"
            if inner.connect["type"] == _ENTRY:
                inner.connect["type"] = "map"
                connect = {**inner.connect, **_semantic("map", schema)}
                return _Type(connect, {"type": kind, part: inner.read}, f"array<{inner.spark}>")
            connect = {"type": kind, part: inner.connect, "optional": False, **_semantic(kind, schema)}
            spark = f"array<{inner.spark}>" if kind == "array" else f"map<string,{inner.spark}>"
            return _Type(connect, {"type": kind, part: inner.read}, spark)
        if isinstance(kind, str) and kind in _PLAIN:
            return _primitive(kind, schema)
        return self.convert(kind, namespace, path, within)

    def _named_type(
        self, schema: Mapping[str, object], namespace: str, full: str, path: tuple[str, ...], within: tuple[str, ...]
    ) -> _Type:
        name = f"n{self._next(path)}"
        if schema["type"] == "enum":
            symbols = [str(symbol) for symbol in _list(schema["symbols"])]
            if not all(map(_USABLE.fullmatch, symbols)) or len(set(symbols)) < len(symbols):
                raise SchemaError(f"has an enumeration with symbols that Avro does not allow{_at(path)}")
            connect = {"type": "string", "optional": False, **_semantic("string", schema)}
            return _Type(connect, {"type": "enum", "name": name, "symbols": symbols}, "string")
        if schema["type"] == "fixed":
            connect = {"type": "bytes", "optional": False, **_semantic("bytes", schema)}
            return _Type(connect, {"type": "fixed", "name": name, "size": schema["size"]}, "binary")
        if full in within or len(path) > MAX_DEPTH:
            raise SchemaError(f"contains itself, or too many levels{_at(path)}")
        return self._record(schema, namespace, name, path, (*within, full))

    def _record(
        self, schema: Mapping[str, object], namespace: str, name: str, path: tuple[str, ...], within: tuple[str, ...]
    ) -> _Type:
        fields = [dict(each) for each in _list(schema["fields"])]  # type: ignore[call-overload]
        names = [str(each["name"]) for each in fields]
        if len(set(names)) < len(names):
            raise SchemaError(f"has a field twice{_at(path)}")
        # Spark finds the fields of a record by their names, in any case.
        is_usable = all(map(_USABLE.fullmatch, names)) and len({each.lower() for each in names}) == len(names)
        self.is_renamed = self.is_renamed or not is_usable
        types = [
            self.convert(each["type"], namespace, (*path, column), within)
            for each, column in zip(fields, names, strict=True)
        ]
        if schema.get("connect.internal.type") == "MapEntry":
            return self._entry(name, dict(zip(names, types, strict=True)))
        for _ in fields:
            self._next(path)
        connect = [
            {**kind.connect, **_default(each, kind.connect), "field": column}
            for each, column, kind in zip(fields, names, types, strict=True)
        ]
        read = [
            {"name": column if is_usable else f"f{number}", "type": kind.read}
            for number, (column, kind) in enumerate(zip(names, types, strict=True))
        ]
        spark = ",".join(f"{quoted_name(column)}:{kind.spark}" for column, kind in zip(names, types, strict=True))
        block: dict[str, object] = {"type": "struct", "fields": connect, "optional": False}
        return _Type(
            {**block, **_semantic("struct", schema)},
            {"type": "record", "name": name, "fields": read},
            f"struct<{spark}>",
        )

    def _entry(self, name: str, types: Mapping[str, _Type]) -> _Type:
        """An entry of a map whose keys are something else than text: in JSON Connect writes it as `[key, value]`."""
        key, value = types["key"], types["value"]
        self.has_entries = True
        fields = [{"name": ENTRY_KEY, "type": key.read}, {"name": ENTRY_VALUE, "type": value.read}]
        connect = {"type": _ENTRY, "keys": key.connect, "values": value.connect, "optional": False}
        spark = f"struct<{ENTRY_KEY}:{key.spark},{ENTRY_VALUE}:{value.spark}>"
        return _Type(connect, {"type": "record", "name": name, "fields": fields}, spark)

    def _union(self, branches: list[object], namespace: str, path: tuple[str, ...], within: tuple[str, ...]) -> _Type:
        types = [branch for branch in branches if branch != "null" and branch != {"type": "null"}]
        kinds = [str(branch["type"]) if isinstance(branch, dict) else str(branch) for branch in types]
        wider = _WIDER.get(frozenset(kinds)) if len(kinds) == 2 else None
        if wider is not None:
            one = _Type(_primitive(wider, {}).connect, list(kinds), _PLAIN[wider][1])
        elif len(types) == 1:
            one = self.convert(types[0], namespace, path, within)
        else:
            raise SchemaError(f"has a union of several types{_at(path)}, which Kafka Connect does not write")
        if len(types) == len(branches):
            return one
        inner = iter(one.read if isinstance(one.read, list) else [one.read])
        read = ["null" if branch == "null" or branch == {"type": "null"} else next(inner) for branch in branches]
        return _Type({**one.connect, "optional": True}, read, one.spark)

    def _next(self, path: tuple[str, ...]) -> int:
        self.count += 1
        if self.count > MAX_FIELDS:
            raise SchemaError(f"has more than {MAX_FIELDS:,} fields{_at(path)}")
        return self.count


def _primitive(kind: str, schema: Mapping[str, object]) -> _Type:
    connect, spark = _PLAIN[kind]
    stated = schema.get("connect.type")
    block: dict[str, object] = {"type": stated if stated in ("int8", "int16") else connect, "optional": False}
    return _Type({**block, **_semantic(kind, schema)}, kind, spark)


def _semantic(kind: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Connect's semantic type and its parameters; where the properties do not say them, by Avro's logical type."""
    name, parameters = schema.get("connect.name"), schema.get("connect.parameters")
    logical = schema.get("logicalType")
    if name is None and logical == "decimal" and kind == "bytes":
        precision, scale = schema.get("precision"), schema.get("scale") or 0
        known = {} if precision in (None, _UNKNOWN_PRECISION) else {"connect.decimal.precision": str(precision)}
        name, parameters = _DECIMAL, {"scale": str(scale), **known}
    if name is None:
        name = _LOGICAL.get((kind, str(logical)))
    stated = {"name": name, "parameters": parameters, "version": schema.get("connect.version")}
    return {key: value for key, value in stated.items() if value is not None}


def _default(each: Mapping[str, object], connect: Mapping[str, object]) -> dict[str, object]:
    """The default of a field, if it has one other than NULL, as it is written in JSON."""
    value = each.get("default")
    return {} if value is None else {"default": _as_json(value, connect)}


def _as_json(value: object, connect: Mapping[str, object]) -> object:
    """A value of a schema's text as Connect's JSON has it: Avro writes bytes as the characters of these numbers."""
    match connect, value:
        case {"type": "bytes"}, str(text):
            return base64.b64encode(text.encode("latin-1")).decode()
        case {"type": "struct", "fields": list(fields)}, dict(row):
            return {each["field"]: _as_json(row[each["field"]], each) for each in fields if each["field"] in row}
        case {"type": "array", "items": dict(items)}, list(elements):
            return [_as_json(element, items) for element in elements]
        case {"type": "map", "values": dict(values)}, dict(entries):
            return {key: _as_json(entry, values) for key, entry in entries.items()}
        case _:
            return value


def _full_name(schema: Mapping[str, object], around: str) -> tuple[str, str]:
    """A named type's full name and namespace. `around`: the namespace that encloses it."""
    name = str(schema["name"])
    namespace = str(schema["namespace"]) if schema.get("namespace") is not None else around
    if "." in name:
        namespace = name.rpartition(".")[0]
        return name, namespace
    return (f"{namespace}.{name}" if namespace else name), namespace


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _at(path: tuple[str, ...]) -> str:
    return f" at {'.'.join(path)}" if path else ""
