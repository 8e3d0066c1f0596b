"""Avro schemas of Hudi commits → columns of Spark types. Owns the mapping; source: Spark's Avro `SchemaConverters`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlmesh_like.names import Column, Schema

_PRIMITIVE = {
    "int": "int", "long": "bigint", "float": "float", "double": "double", "string": "string", "boolean": "boolean",
    "bytes": "binary", "fixed": "binary", "enum": "string", "null": "void",
}  # fmt: skip
_LOGICAL = {
    "date": "date", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz", "local-timestamp-micros": "timestamp_ntz", "uuid": "string",
}  # fmt: skip


def schema_of(text: str) -> Schema:
    """Columns of a record schema given as JSON.

    >>> schema_of('{"type":"record","name":"r","fields":[{"name":"a","type":["null","int"]}]}')
    (Column(name='a', type='int'),)
    """
    record = json.loads(text)
    return tuple(Column(field["name"], spark_type(field["type"])) for field in record["fields"])


def spark_type(avro: object) -> str:
    """Spark's short name of an Avro type; a nullable union has the type of its other branch."""
    if isinstance(avro, list):
        branches = [branch for branch in avro if branch != "null"]
        return spark_type(branches[0]) if len(branches) == 1 else "string"
    if isinstance(avro, str):
        return _PRIMITIVE.get(avro, "string")
    assert isinstance(avro, Mapping)
    logical = avro.get("logicalType")
    if logical == "decimal":
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[str(logical)]
    match avro["type"]:
        case "array":
            return f"array<{spark_type(avro['items'])}>"
        case "map":
            return f"map<string,{spark_type(avro['values'])}>"
        case "record":
            fields = ",".join(f"{field['name']}:{spark_type(field['type'])}" for field in avro["fields"])
            return f"struct<{fields}>"
    return spark_type(avro["type"])
