"""Rows that may not be in the partition that their events name. Owns finding them by the dead letters of their key.

An event that could not be ingested may have moved its row to another partition, or have inserted it: until it is
ingested, the before images of later events of the key may differ from the table, so the table is looked up.
"""

from __future__ import annotations

from sqlmesh_like.cdc.frames import Frame, in_spark, united
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout


def unsure_rows(events: Frame, layout: OdsLayout, letter_rows: Frame | None) -> Frame:
    """Set `lacks_before_position` on events (grain: event) whose key has a dead letter, stored or in this batch."""
    from pyspark.sql import functions as F

    keyed = in_spark(events).withColumn("own_key", F.expr(layout.record_key("row")))
    known: list[Frame] = [keyed.where(f"reason is not null and {layout.missing_key('row')} is null").select("own_key")]
    known += [] if letter_rows is None else [letter_rows.where("row_key is not null").selectExpr("row_key as own_key")]
    keys = in_spark(united(known)).distinct().withColumn("is_doubted", F.lit(True))
    joined = keyed.join(keys, "own_key", "left")
    blind = joined.withColumn(
        "lacks_before_position", F.expr("lacks_before_position or (reason is null and coalesce(is_doubted, false))")
    )
    return blind.select(*events.columns)
