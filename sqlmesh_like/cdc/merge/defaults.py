"""Values of rows in a column that was added with a default. Owns finding those rows: no event reports them.

`ALTER TABLE … ADD COLUMN … DEFAULT 5` changes every row of the source's table and logs none of them. The events that
follow state the default in their schema; stored rows get it, and so do events before the first of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.formats.row_images import EventShape
from sqlmesh_like.cdc.formats.source_types import SourceField, decoder, exact_type, quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import Row, order_of
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.names import IS_DELETED, KEY, Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def defaults_of_new_columns(layout: OdsLayout, stored: Schema, shapes: Sequence[EventShape]) -> dict[str, str]:
    """Spark SQL of the default that events state for each column that the table does not have yet, by name."""
    known = {column.name.lower() for column in stored}
    types = {column.name: column.type or "string" for column in layout.columns if column.name.lower() not in known}
    fields = {field.name: field for shape in shapes for field in shape.fields if field.default is not None}
    return {name: f"cast({stated_default(fields[name])} as {kind})" for name, kind in types.items() if name in fields}


def stated_default(field: SourceField) -> str:
    """Spark SQL of the default that events state of a column."""
    text = sql_literal(field.default or "")
    return decoder(field, text, f"try_cast({text} as {exact_type(field) or 'string'})")


def fill_earlier_events(
    frames: Sequence[tuple[Frame, EventShape]], defaults: Mapping[str, str], *, in_order: bool
) -> list[EventShape]:
    """Give shapes without an added column its default, for events before the first event that has the column.

    In a later event, a column that is absent was dropped. `in_order`: the whole log has one order; otherwise only
    events of one partition are ordered.
    """
    shapes = [shape for _, shape in frames]
    for name, value in defaults.items():
        has = [any(field.name == name for field in shape.fields) for shape in shapes]
        if all(has):
            continue
        firsts = _firsts([frame for (frame, _), own in zip(frames, has, strict=True) if own], in_order=in_order)
        sql = f"if({_is_before(firsts)}, {value}, null)"
        shapes = [
            shape if own else replace(shape, absent={**shape.absent, name: sql})
            for shape, own in zip(shapes, has, strict=True)
        ]
    return shapes


def _firsts(frames: Sequence[Frame], *, in_order: bool) -> dict[str, str]:
    """The first position among the events, by the part of the log within which positions are ordered."""
    part = "''" if in_order else "substring_index(position, '|', 2)"
    entries: dict[str, str] = {}
    for frame in frames:
        text = f"select {part} as part, position from {{events}}"
        places = frame_query(f"select part, min(position) as first from ({text}) group by part", events=frame)
        for place, first in places.collect():
            entries[place] = min(first, entries.get(place, first))
    return entries


def _is_before(firsts: Mapping[str, str]) -> str:
    """Spark SQL: whether an event is before the first position of its part; true in parts that have none yet."""
    whens = (
        f"when {f'startswith(position, {sql_literal(part)})' if part else 'true'} then position < {sql_literal(first)}"
        for part, first in firsts.items()
    )
    return f"case {' '.join(whens)} else true end"


def backfill_defaults(rows: DataFrame, stored: DataFrame, layout: OdsLayout, defaults: Mapping[str, str]) -> DataFrame:
    """Rows to upsert (grain: key × partition) plus, with the defaults, all stored rows that they do not replace.

    Rows older than the stored version are dropped: they would lose against it and leave it without defaults.
    """
    at = [KEY, *([layout.partition_field] if layout.partition_field else [])]
    if layout.order_columns:
        order = f"struct({', '.join(layout.order_columns)})"
        stands = stored.selectExpr(*map(quoted_name, at), f"{order} as stands")
        newest = rows.join(stands, at, "left").where(f"coalesce({order} >= stands, true)")
        rows = newest.select(*rows.columns)
    left = stored.join(rows.select(*at), at, "left_anti")
    values = {**{name: quoted_name(name) for name in stored.columns}, **defaults, IS_DELETED: "false"}
    columns = (
        f"cast({values.get(field.name, 'null')} as {field.dataType.simpleString()}) as {quoted_name(field.name)}"
        for field in rows.schema.fields
    )
    return rows.unionByName(left.selectExpr(*columns))


def backfilled_here(rows: RowFrame, stored: RowFrame, layout: OdsLayout, defaults: Mapping[str, str]) -> RowFrame:
    """The same without Spark."""
    at = [KEY, *([layout.partition_field] if layout.partition_field else [])]
    order = layout.order_columns
    stands = dict(zip(_parts(stored, at), _parts(stored, order), strict=True))
    written = zip(rows.rows, _parts(rows, at), _parts(rows, order), strict=True)
    newest = RowFrame(
        rows.columns,
        [row for row, key, rank in written if key not in stands or order_of(rank) >= order_of(stands[key])],
    )
    replaced = set(_parts(newest, at))
    others = zip(stored.rows, _parts(stored, at), strict=True)
    left = RowFrame(stored.columns, [row for row, key in others if key not in replaced])
    types = {**{column.name: column.type for column in layout.stored_columns}, IS_DELETED: "boolean"}
    values = {**{name: quoted_name(name) for name in stored.columns}, **defaults, IS_DELETED: "false"}
    columns = (f"cast({values.get(name, 'null')} as {types[name]}) as {quoted_name(name)}" for name in rows.columns)
    return newest.unionByName(left.selectExpr(*columns))


def _parts(frame: RowFrame, names: Sequence[str]) -> list[Row]:
    """These columns of each row; an empty row where there are none."""
    return [Row.of(tuple(names), [row[name] for name in names]) for row in frame.collect()]
