"""A table's Avro schema → the Arrow schema of its Parquet files. Owns which types are written as Hudi does."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from sqlmesh_like.hudi.writer.file_merge import UnsupportedRowsError
from sqlmesh_like.names import HUDI_COLUMNS

_PRIMITIVES = {
    "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(),
    "string": pa.string(), "bytes": pa.binary(),
}  # fmt: skip
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-micros": pa.timestamp("us"),
}


def file_schema(avro: str) -> pa.Schema:
    """Columns of the table's data files, Hudi's own first. Raises UnsupportedRowsError for nested and unknown types.

    >>> file_schema('{"type":"record","name":"r","fields":[{"name":"a","type":["null","int"]}]}').field("a")
    pyarrow.Field<a: int32>
    """
    own = [pa.field(name, pa.string()) for name in HUDI_COLUMNS]
    return pa.schema([*own, *(_field(field) for field in json.loads(avro)["fields"])])


def file_footer(avro: str) -> dict[str, str]:
    """The schema in a data file's footer, with Hudi's columns, as Hudi's writers store it."""
    record = json.loads(avro)
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in HUDI_COLUMNS]
    return {"parquet.avro.schema": json.dumps({**record, "fields": [*meta, *record["fields"]]}, separators=(",", ":"))}


def _field(field: Any) -> pa.Field:
    type_ = field["type"]
    if not isinstance(type_, list):
        return pa.field(field["name"], _type(type_), nullable=False)
    branches = [branch for branch in type_ if branch != "null"]
    if len(branches) != 1 or len(type_) != 2:
        raise UnsupportedRowsError(f"the column {field['name']} of type {type_}")
    return pa.field(field["name"], _type(branches[0]))


def _type(avro: Any) -> pa.DataType:
    if isinstance(avro, str) and avro in _PRIMITIVES:
        return _PRIMITIVES[avro]
    logical = avro.get("logicalType") if isinstance(avro, dict) else None
    if logical == "decimal":
        return pa.decimal128(avro["precision"], avro.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    raise UnsupportedRowsError(f"a column of type {avro}")
