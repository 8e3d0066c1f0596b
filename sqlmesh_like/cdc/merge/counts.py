"""Counts of a table's events in a batch. Owns counting them, and the key ranges that limit a search for their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.merge.merge_sql import is_rekeyed
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.names import Column

_RANGED = {"int", "bigint", "string", "date"}
"""Types of key columns whose range limits a search in the table: those with exact statistics in Parquet."""


@dataclass(frozen=True)
class EventCounts:
    """Numbers of events; one event may count in several.

    `good`, `bad`: can or cannot be ingested. `blind`: `lacks_before_position`. `partial`: unchanged values are
    left out. `unsure`: must be read again. `moves`: to another partition. `rekeyed`: the primary key changed.
    `of_a_key`: the most good events that share a key.
    """

    good: int
    bad: int
    blind: int
    partial: int
    unsure: int
    deletes: int
    moves: int
    rekeyed: int
    of_a_key: int


def count_events(events: Frame, layout: OdsLayout) -> EventCounts:
    """Count the events of a table (`Decoded.events`)."""
    moves = "false"
    if layout.partition_field:
        moves = f"kind = 'upsert' and before is not null and {layout.partition('before')} != {layout.partition('row')}"
    conditions = {
        "good": "reason is null",
        "bad": "reason is not null",
        "blind": "lacks_before_position",
        "partial": "size(missing) > 0",
        "unsure": "unsure is not null",
        "deletes": "reason is null and kind = 'delete'",
        "moves": f"reason is null and {moves}",
        "rekeyed": f"reason is null and {is_rekeyed(layout)}",
    }
    counts = ", ".join(f"count_if({condition}) as {name}" for name, condition in conditions.items())
    if layout.has_key:
        # Numbers are grouped fastest, and a collision of hashes does no harm: `of_a_key` may be too large.
        keys = ", ".join(f"row.{quoted_name(name)}" for name in layout.ingest.primary_key)
        sums = ", ".join(f"coalesce(sum({name}), 0) as {name}" for name in conditions)
        grouped = f"select {counts} from {{events}} group by xxhash64({keys})"
        text = f"select {sums}, coalesce(max(good), 0) as of_a_key from ({grouped})"
    else:
        text = f"select {counts}, 1 as of_a_key from {{events}}"
    (numbers,) = frame_query(text, events=events).collect()
    return EventCounts(*(int(number) for number in numbers))


def ranged_columns(layout: OdsLayout, stored: Mapping[str, str | None]) -> list[Column]:
    """The key columns whose range limits a search. `stored`: types of the table's columns, by name in lower case."""
    keys = {name.lower() for name in layout.ingest.primary_key}
    own = (column for column in layout.columns if column.name.lower() in keys and column.type in _RANGED)
    return [column for column in own if stored.get(column.name.lower()) == column.type]
