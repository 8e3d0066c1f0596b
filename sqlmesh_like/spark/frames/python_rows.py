"""Rows of a frame in Python, their times in UTC. Owns how they are fetched to be shown, compared or rendered.

pyspark turns each `timestamp` into the local time of this machine (`TZ`), twice the same one where clocks are set back.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType, TimestampNTZType, TimestampType


def python_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows, in the frame's order; times, those within other values too, are in UTC and have no zone."""
    numbered = frame.toDF(*map(str, range(len(frame.columns))))  # names of a frame may repeat
    plain = {f.name: to for f in numbered.schema.fields if (to := without_zones(f.dataType)) != f.dataType}
    items = [F.col(name).cast(plain[name]) if name in plain else F.col(name) for name in numbered.columns]
    return [tuple(row) for row in (numbered.select(*items) if plain else numbered).collect()]


def without_zones(type_: DataType) -> DataType:
    """The type with `timestamp_ntz` for each `timestamp`: in a session in UTC, a cast to it keeps what is on the clock.

    >>> without_zones(StructType([StructField("a", ArrayType(TimestampType()))])).simpleString()
    'struct<a:array<timestamp_ntz>>'
    """
    match type_:
        case TimestampType():
            return TimestampNTZType()
        case ArrayType():
            return ArrayType(without_zones(type_.elementType), type_.containsNull)
        case MapType():
            return MapType(without_zones(type_.keyType), without_zones(type_.valueType), type_.valueContainsNull)
        case StructType():
            return StructType([StructField(f.name, without_zones(f.dataType), f.nullable) for f in type_.fields])
    return type_
