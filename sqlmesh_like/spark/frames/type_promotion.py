"""A column of an older schema → the type in a newer one. Owns the conversion; the feed knows which files are old.

Hudi lets a schema grow: fields are added anywhere, numbers get wider. A plain cast refuses structs with other fields.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType


def promoted_type(frame: DataFrame, name: str, wanted: DataType) -> Column:
    """The column with this name, case ignored, as the wanted type; NULL where the frame lacks it."""
    fields = {field.name.lower(): field for field in frame.schema.fields}
    field = fields.get(name.lower())
    if field is None:
        return F.lit(None).cast(wanted).alias(name)
    return _as(F.col(f"`{field.name}`"), field.dataType, wanted).alias(name)


def _as(column: Column, written: DataType, wanted: DataType) -> Column:
    if written == wanted:
        return column
    match written, wanted:
        case StructType(), StructType():
            return F.when(column.isNotNull(), F.struct(*_fields(column, written, wanted)))
        case ArrayType(), ArrayType():
            return F.transform(column, lambda item: _as(item, written.elementType, wanted.elementType))
        case MapType(), MapType():
            return F.transform_values(column, lambda _, value: _as(value, written.valueType, wanted.valueType))
        case FloatType(), DoubleType():
            # Through its text, as Hudi does: 0.1 stays 0.1.
            return column.cast("string").cast(wanted)
    return column.cast(wanted)


def _fields(column: Column, written: StructType, wanted: StructType) -> list[Column]:
    known = {field.name.lower(): field for field in written.fields}
    entries: list[Column] = []
    for field in wanted.fields:
        own = known.get(field.name.lower())
        value = F.lit(None).cast(field.dataType) if own is None else _as(column[own.name], own.dataType, field.dataType)
        entries.append(value.alias(field.name))
    return entries
