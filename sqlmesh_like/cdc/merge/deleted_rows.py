"""What `deletes: soft` keeps of a row. Owns finding what a delete does not say: the row keeps the values that it had.

Many logs have only the key of a deleted row, or its key and what else is in an index, and leave the rest NULL or fill
it. The values come from an earlier event of the batch, else from the table. An update that changes the primary key is
a delete of the old one, of which the log may have the key alone, too.
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.row_images import NO_SHAPE, names_where
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame, union_frames
from sqlmesh_like.cdc.merge.earlier_versions import NO_REASON, stored_versions, with_earlier_values
from sqlmesh_like.cdc.merge.merge_sql import is_rekeyed
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout

_LACKS = "kind = 'delete' and reason is null and size(missing) > 0"


def with_kept_values(events: Frame, layout: OdsLayout, stored: Frame | None) -> Frame:
    """Fill the `missing` columns of deletes (grain: event), whose rows the table keeps.

    Of a row that is not known nothing is filled. Events before a delete that are dead letters tell nothing: the row
    keeps the values that the table has. `stored`: the table, None before its first commit.
    """
    events = _with_deletes_of_old_keys(events, layout)
    columns = [row[0] for row in events.where(_LACKS).selectExpr("explode(missing) as name").distinct().collect()]
    if not columns:
        return events
    known = None if stored is None else stored_versions(stored, columns, layout, NO_REASON)
    told = {name: _value(name) for name in columns}
    joined, others = with_earlier_values(events, _LACKS, columns, layout, told, known)
    places = {name: index for index, name in enumerate(columns)}
    values = ", ".join(f"{sql_literal(c.name)}, {_kept(c.name, places.get(c.name))}" for c in layout.columns)
    row = f"if({_LACKS}, named_struct({values}), {{}})"
    filled = {"row": row.format("row"), "before": row.format("before")}
    columns_of_events = (f"{filled[name]} as {name}" if name in filled else name for name in events.columns)
    return union_frames([joined.selectExpr(*columns_of_events), others.select(*events.columns)])


def _value(name: str) -> str:
    """Spark SQL of what an event tells of a column: see `with_earlier_values`."""
    is_told = f"reason is null and not (kind = 'delete' and array_contains(missing, {sql_literal(name)}))"
    return f"if({is_told}, struct(row.{quoted_name(name)} as v, {NO_REASON} as why), null)"


def _kept(name: str, place: int | None) -> str:
    own = f"row.{quoted_name(name)}"
    if place is None:
        return own
    return f"if(array_contains(missing, {sql_literal(name)}) and v{place} is not null, v{place}.v, {own})"


def _with_deletes_of_old_keys(events: Frame, layout: OdsLayout) -> Frame:
    """The events with each update that changes a primary key as two: a delete of the old one, and the update.

    A delete with the key alone has the order of the update, as in `merge_sql.versions`. With an order, NULL in a row
    that has more is NULL: the earlier version may not be there yet.
    """
    is_moved = f"coalesce(reason is null and {is_rekeyed(layout)}, false)"
    moved = events.where(is_moved)
    if moved.isEmpty():
        return events
    ordered = {name.lower() for name in layout.ingest.order_by}
    unknown = names_where(
        {
            column.name: f"before.{quoted_name(column.name)} is null"
            for column in layout.beside_key
            if column.name.lower() not in ordered
        }
    )
    values = ", ".join(
        f"{sql_literal(name)}, {'after' if name.lower() in ordered else 'before'}.{quoted_name(name)}"
        for name in (column.name for column in layout.columns)
    )
    before = f"if({layout.is_key_only('before')}, named_struct({values}), before)" if ordered else "before"
    missing = unknown
    if ordered and layout.ingest.updates != "partial":
        missing = f"if({layout.is_key_only('before')}, {unknown}, {NO_SHAPE})"
    no_row = "if(true, null, before)"
    is_blind = "true" if layout.partition_field else "false"
    old = {"kind": "'delete'", "op": "'d'", "before": before, "after": no_row, "row": before, "missing": missing}
    old |= {"lacks_before_position": is_blind}
    halves = (
        moved.selectExpr(*(f"{half[name]} as {name}" if name in half else name for name in events.columns))
        for half in (old, {"before": no_row})
    )
    return union_frames([events.where(f"not ({is_moved})"), *halves])
