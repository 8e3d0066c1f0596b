"""Stored rows that a batch's events may replace without saying where they are. Owns finding them by their keys.

Few keys are looked up in the table's files (`hudi.key_lookup`); otherwise Spark joins the table with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlmesh_like.cdc.decode.decode import Decoded
from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.frames import Frame, frame_query, in_spark, literal_frame
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.merge.counts import ranged_columns
from sqlmesh_like.cdc.merge.merge_sql import is_rekeyed
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.hudi.avro_schema import schema_of
from sqlmesh_like.hudi.bucket_count import known_buckets
from sqlmesh_like.hudi.key_lookup import MOST_KEYS, KeyLookup, rows_by_key
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMPARABLE = {"int", "bigint", "string"}
"""Types whose values Python and Parquet's statistics compare alike; Python has no dates after the year 9999."""


@dataclass(frozen=True)
class LookedUpRows:
    """The stored rows (`rows`; grain: row) of the events (`events`; grain: event) that do not say where these are.

    Both as tuples: record key, partition and, in a table with `order_by`, what orders the versions of a key.
    """

    layout: OdsLayout
    events: Sequence[tuple[Any, ...]]
    rows: Sequence[tuple[Any, ...]]

    @property
    def are_as_named(self) -> bool:
        """Whether each row is in the partition that its event names, and not newer, if each key has one event.

        That of the former key of a changed one is not.
        """
        versions = {key: (part, rank) for key, part, *rank in self.events}
        return all(
            key in versions and part == versions[key][0] and None not in rank and rank <= versions[key][1]
            for key, part, *rank in self.rows
        )

    def frame(self, events: Frame) -> Frame:
        """The rows with their columns in the table, where the `events` are: in Spark or here."""
        names = (KEY, *_stored_names(self.layout))
        if isinstance(events, RowFrame):
            places = [place for place, _ in enumerate(self.rows[0] if self.rows else ())]
            kept = places if self.layout.partition_field else [place for place in places if place != 1]
            return RowFrame(names, [[row[place] for place in kept] for row in self.rows])
        types = ["string", "string", *([*self.layout.order_types(), "string"] if self.layout.order_columns else [])]
        schema = ", ".join(f"c{number} {kind}" for number, kind in enumerate(types))
        frame = literal_frame(events.sparkSession, self.rows, schema)
        frame = frame if self.layout.partition_field else frame.drop("c1")
        return frame.toDF(*names)


def looked_up_rows(decoded: Decoded, uri: str) -> LookedUpRows | None:
    """Look the rows up in the table's files; None where Spark must join.

    That is where there are many such events or one changes its primary key, and for tables that `rows_by_key` rejects.
    """
    layout, timeline = decoded.layout, Timeline(uri)
    frontier = timeline.frontier
    if decoded.counts.blind > MOST_KEYS or frontier is None:
        return None
    avro = timeline.schema_json(frontier)
    stored = {column.name.lower(): column for column in (schema_of(avro) if avro else ())}
    ranged = ranged_columns(layout, {name: column.type for name, column in stored.items()})
    typed = [stored[column.name.lower()].name for column in ranged if column.type in _COMPARABLE]
    ranks = (*layout.orders("row"), "position") if layout.order_columns else ()
    columns = [layout.record_key("row"), layout.partition("row"), *ranks]
    blind = decoded.good.where("lacks_before_position")
    events = _collected(blind, [*columns, *(f"row.{quoted_name(name)}" for name in typed)])
    keys = [(event[0], *event[len(columns) :]) for event in events]
    if decoded.counts.rekeyed:
        former = [layout.record_key("before"), *(f"before.{quoted_name(name)}" for name in typed)]
        keys += _collected(blind.where(is_rekeyed(layout)), former)
    values = {name: {key[number] for key in keys} for number, name in enumerate(typed, start=1)}
    buckets = known_buckets(timeline) or 1
    rows = rows_by_key(timeline, KeyLookup({key[0] for key in keys}, _stored_names(layout), buckets, values))
    if rows is None:
        return None
    parts = [row if layout.partition_field else (row[0], "", *row[1:]) for row in rows]
    return LookedUpRows(layout, [event[: len(columns)] for event in events], parts)


def _collected(events: Frame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in events.selectExpr(*(f"{sql} as c{n}" for n, sql in enumerate(columns))).collect()]


def _stored_names(layout: OdsLayout) -> list[str]:
    """Names in the table of the partition and of what orders the versions of a key, where it has these."""
    return [*([layout.partition_field] if layout.partition_field else []), *layout.order_columns]


def joined_rows(decoded: Decoded, uri: str, versions: Frame, *, is_ranked: bool, again: bool) -> Frame:
    """The stored rows of the `versions` that do not say where these are (`again`: of all), by a join in Spark."""
    keys = (versions if again else versions.where("lacks_before_position")).select(KEY).distinct()
    spark = in_spark(versions, "stored rows that only Spark looks up").sparkSession
    from sqlmesh_like.spark.change_feed.change_feed import change_feed

    timeline = Timeline(uri)
    if (newest := timeline.newest_readable) is None:
        stored = spark.read.format("hudi").load(uri)
    else:  # from the files in its timeline: Hudi would list folders
        stored = change_feed(spark, timeline).current(newest, hidden=is_ranked)
    stored = stored if again else _within_ranges(stored, decoded.events, decoded.layout)
    text = f"select * from {{stored}} left semi join {{keys}} using ({KEY})"
    return frame_query(text, stored=stored, keys=keys)


def _within_ranges(stored: DataFrame, events: Frame, layout: OdsLayout) -> DataFrame:
    """Limit stored rows to the key ranges of the blind events, so that Parquet's statistics exclude most files.

    A key column whose type is about to change is not used: its stored values are ordered differently.
    """
    from pyspark.sql import functions as F

    columns = ranged_columns(layout, {name.lower(): kind for name, kind in stored.dtypes})
    if not columns:
        return stored
    ends = (
        events.where("lacks_before_position").selectExpr(*(end for column in columns for end in _ends(column))).first()
    )
    assert ends is not None
    for column, least, greatest in zip(columns, ends[::2], ends[1::2], strict=True):
        stored = stored.where(F.col(quoted_name(column.name)).between(F.lit(least), F.lit(greatest)))
    return stored


def _ends(column: Column) -> tuple[str, str]:
    # Where an update changes the key, the row with the old key is searched for too.
    both = f"row.{quoted_name(column.name)}, before.{quoted_name(column.name)}"
    return f"min(least({both}))", f"max(greatest({both}))"
