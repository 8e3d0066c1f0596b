"""Rows that may not be in the partition that their events name. Owns finding them by the dead letters of their key.

An event that could not be ingested may have moved its row to another partition, or have inserted it: until it is
ingested, the before images of later events of the key may differ from the table, so the table is looked up.
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.frames import Frame, frame_query, union_frames
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout


def unsure_rows(events: Frame, layout: OdsLayout, letter_rows: Frame | None) -> Frame:
    """Set `lacks_before_position` on events (grain: event) whose key has a dead letter, stored or in this batch."""
    bad = events.where(f"reason is not null and {layout.missing_key('row')} is null")
    known: list[Frame] = [bad.selectExpr(f"{layout.record_key('row')} as doubted_key")]
    if letter_rows is not None:
        known.append(letter_rows.where("row_key is not null").selectExpr("row_key as doubted_key"))
    doubted = "lacks_before_position or (reason is null and doubted_key is not null) as lacks_before_position"
    columns = [doubted if name == "lacks_before_position" else quoted_name(name) for name in events.columns]
    keyed = f"select *, {layout.record_key('row')} as event_key from {{events}}"
    text = f"select {', '.join(columns)} from ({keyed}) e left join {{keys}} k on e.event_key = k.doubted_key"
    return frame_query(text, events=events, keys=union_frames(known).distinct())
