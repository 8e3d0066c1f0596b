"""Rows that may not be stored where their events say. Owns finding them by the dead letters of their key.

An event that could not be ingested may have moved its row to another partition, or have been its insert: until it comes
in, what later events of the key say of the row before is not what the table has, so the table is asked.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sqlmesh_like.cdc.schema.ods_layout import OdsLayout


def unsure_rows(events: DataFrame, layout: OdsLayout, letter_rows: DataFrame | None) -> DataFrame:
    """Events (grain: event) with `lacks_before_position` where a dead letter has their key."""
    keyed = events.withColumn("own_key", F.expr(layout.record_key("row")))
    known = [keyed.where(f"reason is not null and {layout.missing_key('row')} is null").select("own_key")]
    known += [] if letter_rows is None else [letter_rows.where("row_key is not null").selectExpr("row_key as own_key")]
    keys = reduce(DataFrame.unionByName, known).distinct().withColumn("is_doubted", F.lit(True))
    joined = keyed.join(keys, "own_key", "left")
    blind = joined.withColumn(
        "lacks_before_position", F.expr("lacks_before_position or (reason is null and coalesce(is_doubted, false))")
    )
    return blind.select(*events.columns)
