"""The side table of an ODS table that remembers deleted and moved keys. Owns its layout and retention.

Without it, a late update that is older than a delete would bring the row back; `merge_sql` has the rule. It is written
before the main table: a crash between the two leaves a floor that the replayed batch ties with, and ties go to the
batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.in_process.commits import commit_frame, stored_rows, without_remains
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.merge import merge_sql
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.hudi.key_lookup import KeyLookup, rows_by_key
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY, Column
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RETENTION_DAYS = 30
"""How long a delete or move is remembered: an older event that arrives later than that counts as a new one."""

# Nothing reads this table's history.
_HOUSEKEEPING = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.trigger.max.commits": "20",
    "hoodie.clean.commits.retained": "2",
    "hoodie.archive.automatic": "true",
}


def read_floors(spark: SparkSession, uri: str) -> DataFrame | None:
    """The floors (grain: key); None where no key was deleted or moved yet."""
    return spark.read.format("hudi").load(uri) if Timeline(uri).frontier else None


def floors_for(events: Frame, uri: str, layout: OdsLayout, *, of_all: bool = False) -> Frame | None:
    """The floors of the events' keys, and perhaps or certainly (`of_all`) of others (grain: key).

    None where no key was deleted or moved yet.
    """
    if not isinstance(events, RowFrame):
        return read_floors(events.sparkSession, uri)
    timeline = without_remains(uri)
    if timeline.frontier is None:
        return None
    columns = [*layout.rank_columns, "part", "parts"]
    if of_all:
        return stored_rows(timeline).select(KEY, *columns)
    former = f"if(before is null, null, {layout.record_key('before')})" if layout.has_key else "null"
    keyed = events.selectExpr(f"{layout.record_key('row')} as row_key", f"{former} as former_key")
    keys = {key for row in keyed.rows for key in row if key is not None}
    rows = rows_by_key(timeline, KeyLookup(keys, columns))
    if rows is None:
        raise NotProvenError("deleted keys that this process cannot look up")
    return RowFrame([KEY, *columns], rows)


def write_floors(uri: str, layout: OdsLayout, decisions: Frame, floors: Frame | None) -> None:
    """Remember the deletes and moves among the decisions, and forget those past the retention."""
    fresh = frame_query(merge_sql.new_floors(layout), decisions=decisions)
    table = HudiTable(uri, f"tombstones_{layout.table.name}", (KEY,), options=_HOUSEKEEPING)
    if isinstance(fresh, RowFrame):
        if len(Timeline(table.uri).commit_instants) >= _MOST_COMMITS:
            raise NotProvenError("the history of deleted keys is long: Spark cleans it")
        ranks = [column for column in layout.stored_columns if column.name in layout.rank_columns]
        parts = (Column("part", "string"), Column("parts", "string"), Column("noted_at", "timestamp"))
        commit_frame(fresh, replace(table, options={}), {}, (Column(KEY, "string"), *ranks, *parts))
        return
    if floors is not None and not isinstance(floors, RowFrame):
        limit = f"noted_at < current_timestamp() - interval {RETENTION_DAYS} days"
        old = floors.where(limit).join(fresh, KEY, "left_anti")
        fresh = fresh.unionByName(old.selectExpr(*(c if c != IS_DELETED else f"true as {c}" for c in fresh.columns)))
    write(fresh, table, "upsert", {})


_MOST_COMMITS = 60
"""Commits after which Spark writes the table, which also removes its history and the floors past the retention."""
