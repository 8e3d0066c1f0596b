"""Rows of a table looked up by keys, for a program that runs in this process. Owns the one job that returns them.

The keys are a local relation, which is broadcast; Parquet's statistics skip what lies outside of their range.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.run.remote_reader import KeyedRows
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.frames.arrow_frame import arrow_frame, arrow_rows

_RANGED = ("tinyint", "smallint", "int", "bigint", "string", "date")
"""Types whose literals mean the same in Python and in Spark, whatever the zone."""


def keyed_rows(session: SparkSession, wanted: KeyedRows) -> pa.Table | None:
    """The rows; None where they are too many, or the table has other types."""
    stored = change_feed(session, Timeline(wanted.uri)).current(wanted.frontier)
    if any(stored.schema[column.name].dataType.simpleString() != column.type for column in wanted.columns):
        return None
    names = wanted.keys.column_names
    schema = StructType([StructField(_key(name), stored.schema[name].dataType) for name in names])
    keys = arrow_frame(session, wanted.keys, schema)
    conditions = [each for name in names for each in _range(stored, wanted.keys, name)]
    same = [_same(stored, keys, name, wanted.keys.column(name).null_count > 0) for name in names]
    rows = reduce(DataFrame.where, conditions, stored).join(F.broadcast(keys), reduce(and_, same), "left_semi")
    return arrow_rows(rows.select(*(f"`{column.name}`" for column in wanted.columns)), wanted.most)


def _range(stored: DataFrame, keys: pa.Table, name: str) -> Iterator[Column]:
    """What statistics can tell of a row that has one of the keys."""
    values = keys.column(name)
    if values.null_count or not len(values) or stored.schema[name].dataType.simpleString() not in _RANGED:
        return
    least, most = pc.min_max(values).as_py().values()
    yield stored[f"`{name}`"].between(F.lit(least), F.lit(most))


def _same(stored: DataFrame, keys: DataFrame, name: str, has_null: bool) -> Column:
    own, theirs = stored[f"`{name}`"], keys[f"`{_key(name)}`"]
    return own.eqNullSafe(theirs) if has_null else own == theirs


def _key(name: str) -> str:
    return f"_sml_key_of_{name}"
