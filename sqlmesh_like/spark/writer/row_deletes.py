"""Rows of a merge-on-read table deleted for good. Owns the commit by Hudi, which has no change log of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.hudi.bucket_count import known_buckets
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables.hudi_table import write
from sqlmesh_like.spark.writer.rebucket import carried_metadata, table_as_it_is


def delete_rows(
    session: SparkSession,
    uri: str,
    columns: Sequence[str],
    values: Collection[Sequence[str]],
    options: Mapping[str, str],
) -> int:
    """Delete the rows whose `columns` have one of these combinations of `values`. Returns their number."""
    timeline = Timeline(uri)
    frontier = timeline.frontier
    if frontier is None or not values:
        return 0
    feed = change_feed(session, timeline)
    names = [column.name for column in feed.schema(frontier) if not column.name.startswith("_hoodie_")]
    rows = feed.current(frontier, hidden=True).select(*[F.col(f"`{name}`") for name in names])
    rows = _matching(rows, columns, values)
    if count := rows.count():
        buckets = known_buckets(timeline) or 1
        table = table_as_it_is(timeline, options, buckets)
        write(rows.withColumn(IS_DELETED, F.lit(True)), table, "upsert", carried_metadata(timeline, buckets))
    return count


def _matching(rows: DataFrame, columns: Sequence[str], values: Collection[Sequence[str]]) -> DataFrame:
    """The rows, compared in the types of their columns; by a join, as a thousand conditions overflow Java's stack."""
    types = dict(rows.dtypes)
    names = [next(name for name in types if name.lower() == column.lower()) for column in columns]
    texts = [f"_sml_wanted_{number}" for number in range(len(names))]
    schema = ", ".join(f"{text} string" for text in texts)
    keys = rows.sparkSession.createDataFrame([tuple(key) for key in values], schema)
    is_equal = (F.col(f"`{name}`") == F.col(text).cast(types[name]) for name, text in zip(names, texts, strict=True))
    return rows.join(F.broadcast(keys), reduce(and_, is_equal), "left_semi")
