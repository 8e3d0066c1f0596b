"""The side table of an ODS table that remembers deleted and moved keys. Owns its layout and retention.

Without it, a late update that is older than a delete would bring the row back; `merge_sql` has the rule. It is written
before the main table: a crash between the two leaves a floor that the replayed batch ties with, and ties go to the
batch.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.formats.literal_frame import frame_query
from sqlmesh_like.cdc.merge import merge_sql
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.spark.tables.hudi_table import HudiTable, write

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


def write_floors(
    spark: SparkSession, uri: str, layout: OdsLayout, decisions: DataFrame, floors: DataFrame | None
) -> None:
    """Remember the deletes and moves among the decisions, and forget those past the retention."""
    fresh = frame_query(spark, merge_sql.new_floors(layout), decisions=decisions)
    if floors is not None:
        fresh = fresh.unionByName(_expired(floors, fresh))
    table = HudiTable(uri, f"tombstones_{layout.table.name}", (KEY,), options=_HOUSEKEEPING)
    write(fresh, table, "upsert", {})


def _expired(floors: DataFrame, fresh: DataFrame) -> DataFrame:
    limit = f"noted_at < current_timestamp() - interval {RETENTION_DAYS} days"
    old = floors.where(limit).join(fresh, KEY, "left_anti")
    return old.selectExpr(*(c if c != IS_DELETED else f"true as {c}" for c in fresh.columns))
