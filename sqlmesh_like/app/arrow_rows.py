"""Rows as an Arrow table. Owns the mapping from Spark's types to Arrow's; times are in UTC, with microseconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.names import Schema
from sqlmesh_like.run.ports import Rows

_SIMPLE: Mapping[exp.DType, Any] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),  # Spark's `timestamp`
    exp.DType.TIMESTAMPLTZ: pa.timestamp("us", tz="UTC"),
    exp.DType.TIMESTAMPNTZ: pa.timestamp("us"),
    exp.DType.BINARY: pa.binary(),
}


def arrow_table(rows: Rows) -> Any:
    """Return the rows as a `pyarrow.Table`; Arrow infers the type of a column whose type is not known."""
    types = [arrow_type(column.type) for column in rows.schema]
    values = list(zip(*rows.rows, strict=True)) or [()] * len(types)
    arrays = [pa.array(map(_plain, column), type=type_) for column, type_ in zip(values, types, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in rows.schema])


def arrow_schema(schema: Schema) -> Any:
    """Return the `pyarrow.Schema` of these columns; a column whose type is not known is of type null."""
    return pa.schema([(column.name, arrow_type(column.type) or pa.null()) for column in schema])


def arrow_type(spark_type: str | None) -> Any | None:
    """Return the Arrow type of a Spark type as Spark spells it; None where it is not known.

    >>> arrow_type("decimal(10,2)"), arrow_type("array<int>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<element: int32>))
    """
    try:
        return None if spark_type is None else _arrow(exp.DataType.build(spark_type, dialect="spark"))
    except SqlglotError:
        return None


def _arrow(type_: exp.DataType) -> Any:
    inner = type_.expressions
    match type_.this:
        case exp.DType.DECIMAL:
            precision, scale = [int(part.name) for part in inner] or (10, 0)
            return pa.decimal128(precision, scale)
        case exp.DType.ARRAY:
            return pa.list_(pa.field("element", _arrow(inner[0])))
        case exp.DType.MAP:
            return pa.map_(_arrow(inner[0]), _arrow(inner[1]))
        case exp.DType.STRUCT:
            return pa.struct([(field.name, _arrow(field.args["kind"])) for field in inner])
    return _SIMPLE.get(type_.this, pa.string())


def _plain(value: object) -> object:
    """Return a value in a form that Arrow accepts: Spark's rows become dicts, at any depth of lists and tuples."""
    as_dict = getattr(value, "asDict", None)
    if as_dict is not None:
        return {name: _plain(item) for name, item in as_dict().items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value
