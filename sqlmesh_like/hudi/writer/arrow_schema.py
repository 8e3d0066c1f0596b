"""A table's Avro schema → the Arrow schema of its Parquet files, and rows as that has them.

Owns which types are written as Hudi does.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sqlmesh_like.names import HUDI_COLUMNS

_PRIMITIVES = {
    "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(),
    "string": pa.string(), "bytes": pa.binary(),
}  # fmt: skip
_MOMENT = pa.timestamp("us", "UTC")
_LOGICAL = {
    "date": pa.date32(),
    "timestamp-micros": _MOMENT,
    "local-timestamp-micros": pa.timestamp("us"),
}


class UnsupportedRowsError(Exception):
    """Raised for rows that this writer cannot merge as Hudi would; the text says why. Nothing is committed then."""


def file_schema(avro: str) -> pa.Schema:
    """Columns of the table's data files, Hudi's own first. Raises UnsupportedRowsError for other types than these.

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


def conform_values(column: pa.ChunkedArray, wanted: pa.Field) -> pa.ChunkedArray:
    """The column with the type of a field of the table's files: moments get UTC, fields and elements may lose NULL.

    Raises UnsupportedRowsError for other types, fields of other names or in another order, and for NULL in a field that
    has none.
    """
    return pa.chunked_array([_conform(chunk, wanted) for chunk in column.chunks], wanted.type)


def _conform(values: pa.Array, wanted: pa.Field) -> pa.Array:
    own, type_ = values.type, wanted.type
    if own == type_:
        return values
    if (own, type_) == (pa.timestamp("us"), _MOMENT):
        return values.cast(type_)
    if pa.types.is_list(own) and pa.types.is_list(type_):
        return _conform_lists(values, wanted)
    is_struct = pa.types.is_struct(own) and pa.types.is_struct(type_)
    if not is_struct or [field.name for field in own] != [field.name for field in type_]:
        raise UnsupportedRowsError(f"{wanted.name} as {own}, which is {type_}")
    is_null, parts = values.is_null(), []
    for number, field in enumerate(type_):
        part = _conform(values.field(number), field)
        parts.append(part if field.nullable else _with_values(part, is_null, field.name))
    return pa.StructArray.from_arrays(parts, fields=list(type_), mask=is_null)


def _conform_lists(lists: pa.ListArray, wanted: pa.Field) -> pa.ListArray:
    """The lists, which may be a part of an array, with elements as those of a field; NULL lists stay NULL."""
    element, elements = wanted.type.value_field, _conform(lists.flatten(), wanted.type.value_field)
    if not element.nullable and elements.null_count:
        raise UnsupportedRowsError(f"an element of {wanted.name} without a value")
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, elements, type=wanted.type, mask=lists.is_null())


def _with_values(values: pa.Array, is_null: pa.Array, name: str) -> pa.Array:
    """The values with any other one where the struct around them is NULL: a field without NULL must have one."""
    missing = values.is_null()
    if pc.any(pc.and_(missing, pc.invert(is_null))).as_py():
        raise UnsupportedRowsError(f"{name} without a value")
    if not pc.any(missing).as_py():
        return values
    present = pc.index(missing, False).as_py()
    if present < 0:
        raise UnsupportedRowsError(f"{name} without any value")
    return values.take(pc.if_else(missing, present, pa.array(range(len(values)), pa.int64())))


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
    if isinstance(avro, dict) and avro.get("type") == "array":
        return pa.list_(_field({"name": "element", "type": avro["items"]}))
    if isinstance(avro, dict) and avro.get("type") == "record":
        return pa.struct([_field(field) for field in avro["fields"]])
    raise UnsupportedRowsError(f"a column of type {avro}")
