"""Maps as lists of their entries in the order of the keys, and back: Spark neither groups by maps nor compares them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Convert = Callable[[Column, DataType], Column]


def has_map(type_: DataType) -> bool:
    """
    >>> from pyspark.sql.types import StringType
    >>> has_map(ArrayType(MapType(StringType(), StringType()))), has_map(ArrayType(StringType()))
    (True, False)
    """
    match type_:
        case MapType():
            return True
        case ArrayType():
            return has_map(type_.elementType)
        case StructType():
            return any(has_map(field.dataType) for field in type_.fields)
    return False


def as_entries(column: Column, type_: DataType) -> Column:
    """The column of this type with its maps, those within other values too, as sorted lists of (key, value)."""
    match type_:
        case MapType():
            entries = F.map_entries(column)
            if has_map(type_.valueType):
                entries = F.transform(entries, lambda entry: F.struct(entry.key, _value(entry, type_, as_entries)))
            return F.array_sort(entries)
        case ArrayType() if has_map(type_):
            return F.transform(column, lambda item: as_entries(item, type_.elementType))
        case StructType() if has_map(type_):
            return _struct(column, type_, as_entries)
    return column


def as_maps(column: Column, type_: DataType) -> Column:
    """The inverse of `as_entries`; `type_` is the type before it."""
    match type_:
        case MapType():
            if has_map(type_.valueType):
                column = F.transform(column, lambda entry: F.struct(entry.key, _value(entry, type_, as_maps)))
            return F.map_from_entries(column)
        case ArrayType() if has_map(type_):
            return F.transform(column, lambda item: as_maps(item, type_.elementType))
        case StructType() if has_map(type_):
            return _struct(column, type_, as_maps)
    return column


def _value(entry: Column, type_: MapType, convert: Convert) -> Column:
    return convert(entry.value, type_.valueType).alias("value")


def _struct(column: Column, type_: StructType, convert: Convert) -> Column:
    fields = [convert(column[field.name], field.dataType).alias(field.name) for field in type_.fields]
    return F.when(column.isNotNull(), F.struct(*fields))
