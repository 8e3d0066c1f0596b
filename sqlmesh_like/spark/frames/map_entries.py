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
    if isinstance(type_, MapType):
        return F.array_sort(_with_values(F.map_entries(column), type_, as_entries))
    return _within(column, type_, as_entries)


def as_maps(column: Column, type_: DataType) -> Column:
    """The inverse of `as_entries`; `type_` is the type before it."""
    if isinstance(type_, MapType):
        return F.map_from_entries(_with_values(column, type_, as_maps))
    return _within(column, type_, as_maps)


def _with_values(entries: Column, type_: MapType, convert: Convert) -> Column:
    """The entries of a map with their values converted, if these have maps in them."""
    if not has_map(type_.valueType):
        return entries
    return F.transform(entries, lambda entry: F.struct(entry.key, convert(entry.value, type_.valueType).alias("value")))


def _within(column: Column, type_: DataType, convert: Convert) -> Column:
    """A list or struct with its items converted, if there are maps in them; any other column as it is."""
    match type_:
        case ArrayType() if has_map(type_):
            return F.transform(column, lambda item: convert(item, type_.elementType))
        case StructType() if has_map(type_):
            fields = [convert(column[field.name], field.dataType).alias(field.name) for field in type_.fields]
            return F.when(column.isNotNull(), F.struct(*fields))
    return column
