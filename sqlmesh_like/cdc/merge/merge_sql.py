"""One final action per key out of a batch. Owns the order of events and where rows must vanish; knows no engine.

Every event is a version of its key, ordered by (order_by, position). The newest version a key ever had decides: its row
is stored in exactly one partition, or nowhere. `floors` remember, for keys that were deleted or moved, the newest such
version, so that a late event can neither resurrect a row nor leave a second copy of it elsewhere. Ingesting a batch
twice gives the same state: ties go to the batch.

All texts are Spark SQL over named relations in braces, as `frame_query(text, name=frame)` expects.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.schema.ods_layout import POSITION, SOFT_DELETED, OdsLayout
from sqlmesh_like.names import IS_DELETED, KEY

IS_REMEMBERED = "not is_late and (winner.removed or size(parts) > 1)"
"""Spark SQL over a decision: whether its key was deleted or moved."""


def is_rekeyed(layout: OdsLayout) -> str:
    """Spark SQL: whether an event changes its row's primary key."""
    if not layout.has_key:
        # Without a primary key, the position is the key and never changes.
        return "false"
    has_old_key = f"before is not null and {layout.missing_key('before')} is null"
    return f"kind = 'upsert' and {has_old_key} and {layout.key('before')} != {layout.key('after')}"


def versions(layout: OdsLayout, *, with_rekeyed: bool = True) -> str:
    """From `{{events}}` (grain: event): every version (grain: key × position), with all partitions that it names.

    An update that changes a primary key is also a delete of the old key.
    """
    record_key = layout.record_key("row")
    same_key = f"other is not null and {layout.key('other')} = {layout.key('row')}"
    named = zip(layout.orders("ordered"), layout.order_columns, strict=False)
    orders = "".join(f", {order} as {name}" for order, name in named)
    # A before image with only the key has no order of its own and names no partition.
    before_or_after = f"if({layout.is_key_only('before')}, after, before)"
    part, left_part = layout.partition("row"), layout.partition("other")
    former = f"""
  union all
  select position, true, before, null, lacks_before_position, {before_or_after}
  from {{events}} where {is_rekeyed(layout)}"""
    return f"""
with sides as (
  select position, kind = 'delete' as removed, if(kind = 'delete', before, after) as row,
    before as other, lacks_before_position,
    if(kind = 'delete', before, after) as ordered
  from {{events}}{former if with_rekeyed else ""}
)
select {record_key} as {KEY}, row, removed, lacks_before_position, position as {POSITION}{orders}, {part} as part,
  array_distinct(array({part}, if({same_key}, {left_part}, {part}))) as parts
from sides"""


def rows_that_stay(layout: OdsLayout, position: str) -> str:
    """From `{{events}}`: keys of rows that were read after a position, and cannot be ingested (grain: event)."""
    is_lost = f"reason is not null and op = 'r' and {layout.missing_key('row')} is null"
    return (
        f"select {layout.record_key('row')} as stays from {{events}}"
        f" where {is_lost} and position > {sql_literal(position)}"
    )


def truncate_sql(
    layout: OdsLayout,
    position: str,
    *,
    origin: str | None,
    stored: Collection[str] | None,
    in_order: bool,
    with_kept: bool = False,
) -> str:
    """From `{{versions}}` and `{{stored}}`: deletes of all rows from before the source was emptied (grain: key).

    `with_kept`: but for the keys in `{{kept}}`.

    Each is a version of its row at the log position of the truncate, with the values that the row had last. `stored`:
    the table's current columns, None where there is no table. `in_order`: the whole log has one order; otherwise only
    events of one partition are ordered.
    """
    at = sql_literal(position)
    of = (
        f" and row.{quoted_name(layout.ingest.origin)} = {sql_literal(origin)}"
        if origin and layout.ingest.origin
        else ""
    )
    orders = layout.order_columns[:-1]
    named = "".join(f", {name}" for name in orders)
    before = f"""
  select {KEY}, row, 1 as turn, {POSITION}{named}, part, parts
  from {{versions}} where {POSITION} < {at}{of}"""
    if stored is not None:
        earlier = f"{POSITION} < {at}"
        if not in_order:
            earlier += f" or substring_index({POSITION}, '|', 2) != substring_index({at}, '|', 2)"
        part = quoted_name(layout.partition_field) if layout.partition_field else "''"
        before += f"""
  union all
  select {KEY}, row, 0, {POSITION}{named}, {part}, array({part})
  from (select *, {layout.stored_row(stored)} as row from {{stored}}) where ({earlier}){of}"""
    # Without an order a batch comes after what is stored, whatever the positions.
    rank = f"struct({', '.join((*orders, 'turn', POSITION))})"
    but_kept = f"(select * from before left join {{kept}} on {KEY} = stays where stays is null)"
    return f"""
with before as ({before}
), standing as (
  select {KEY}, max_by(struct(row, part{named}), {rank}) as last,
    array_distinct(flatten(collect_list(parts))) as parts
  from {but_kept if with_kept else "before"} group by {KEY}
)
select {KEY}, last.row as row, true as removed, false as lacks_before_position, {at} as {POSITION},
  {"".join(f"last.{name} as {name}, " for name in orders)}last.part as part, parts
from standing"""


def stood(layout: OdsLayout) -> str:
    """From `{{stored}}` (rows of the keys): their partitions and versions as floors (grain: row)."""
    part = quoted_name(layout.partition_field) if layout.partition_field else "''"
    return f"select {KEY}, {', '.join(layout.rank_columns)}, {part} as part, {part} as parts from {{stored}}"


def places(layout: OdsLayout) -> str:
    """From `{{stored}}` (rows of the keys): the partitions that hold them (grain: key)."""
    part = quoted_name(layout.partition_field) if layout.partition_field else "''"
    return f"select {KEY}, collect_set({part}) as parts from {{stored}} group by {KEY}"


def united_versions(layout: OdsLayout) -> str:
    """From `{{floors}}` (grain: any): the newest of each key, with the partitions of all of them (grain: key)."""
    ranks = ", ".join(layout.rank_columns)
    parts = "array_join(array_distinct(flatten(collect_list(split(parts, '/')))), '/')"
    newest = f"max_by(struct({ranks}, part), struct({ranks})) as newest, {parts} as parts"
    result = f"select {KEY}, {newest} from {{floors}} group by {KEY}"
    return f"select {KEY}, {_each('newest.{0} as {0}', layout)}, newest.part as part, parts from ({result})"


def decisions(layout: OdsLayout, *, with_floors: bool, with_places: bool) -> str:
    """From `{{versions}}`, `{{floors}}` and `{{places}}` (partitions of stored rows): one decision (grain: key).

    `winner` is the newest version in the batch, `f` the floor; `is_late`: whether the floor is newer.
    """
    order = ", ".join(layout.rank_columns)
    rank = f"struct({order})"
    joins = f"left join {{floors}} f on n.{KEY} = f.{KEY} " if with_floors else ""
    joins += f"left join {{places}} p on n.{KEY} = p.{KEY}" if with_places else ""
    parts = "n.parts"
    if with_floors:
        parts = f"array_union({parts}, coalesce(split(f.parts, '/'), cast(array() as array<string>)))"
    if with_places:
        parts = f"array_union({parts}, coalesce(p.parts, cast(array() as array<string>)))"
    floor = f"f.part as floor_part, {_each('f.{0} as floor_{0}', layout)}" if with_floors else "null as floor_part"
    is_late = f"coalesce(struct({_each('winner.{0}', layout)}) < struct({_each('f.{0}', layout)}), false)"
    return f"""
with newest as (
  select {KEY}, max_by(struct(row, removed, part, {order}), {rank}) as winner,
    array_distinct(flatten(collect_list(parts))) as parts
  from {{versions}} group by {KEY}
)
select n.{KEY}, winner, {parts} as parts, {is_late if with_floors else "false"} as is_late, {floor}
from newest n {joins}"""


def decisions_of_one(layout: OdsLayout) -> str:
    """From `{{events}}`, one per key and none with an earlier version: one decision (grain: key)."""
    rank = ", ".join(layout.rank_columns)
    known = "false as is_late, null as floor_part"
    result = versions(layout, with_rekeyed=False)
    return f"select {KEY}, struct(row, removed, part, {rank}) as winner, parts, {known} from ({result})"


def first_load_sql(layout: OdsLayout, position: str) -> str:
    """From `{{events}}`, one per key: the rows of a table that is still empty (grain: key). `position`: its SQL."""
    columns = [f"{layout.record_key('row')} as {KEY}"]
    columns += [f"row.{quoted_name(column.name)} as {quoted_name(column.name)}" for column in layout.columns]
    if layout.partition_field:
        columns.append(f"{layout.partition('row')} as {quoted_name(layout.partition_field)}")
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    columns += [f"{order} as {name}" for order, name in named]
    columns.append(f"{position} as {POSITION}")
    is_soft = layout.ingest.deletes == "soft"
    if is_soft:
        columns.append(f"kind = 'delete' as {SOFT_DELETED}")
    columns.append(f"false as {IS_DELETED}")
    kept = "" if is_soft else " where kind <> 'delete'"
    return f"select {', '.join(columns)} from {{events}}{kept}"


def net_rows(layout: OdsLayout, *, with_floors: bool) -> str:
    """From `{{decisions}}`: the rows to upsert (grain: key × partition); `IS_DELETED` marks deletes."""
    named = [quoted_name(column.name) for column in layout.columns]
    columns = [KEY, *(f"winner.row.{name} as {name}" for name in named)]
    if layout.partition_field:
        columns.append(f"place as {quoted_name(layout.partition_field)}")
    for name in layout.rank_columns:
        value = f"if(is_late, floor_{name}, winner.{name})" if with_floors else f"winner.{name}"
        columns.append(f"{value} as {name}")
    is_own = "not is_late and place = winner.part"
    # With an order, Hudi keeps the newest row whatever is deleted; without one, a late event must not touch any row.
    late = "is_late and place <=> floor_part" if layout.order_columns else "is_late"
    if layout.ingest.deletes == "soft":
        columns += [f"{is_own} and winner.removed as {SOFT_DELETED}", f"not ({is_own}) as {IS_DELETED}"]
    else:
        columns.append(f"not ({is_own}) or winner.removed as {IS_DELETED}")
    # Without partitions, all rows have the same one.
    place = "explode(parts)" if layout.partition_field else "''"
    return f"""
select {", ".join(columns)}
from (select *, {place} as place from {{decisions}})
where not ({late})"""


def new_floors(layout: OdsLayout) -> str:
    """From `{{decisions}}`: the floors to remember (grain: key). `part` is NULL where the row is gone."""
    gone = "false" if layout.ingest.deletes == "soft" else "winner.removed"
    return f"""
select {KEY}, {_each("winner.{0} as {0}", layout)}, if({gone}, null, winner.part) as part,
  array_join(parts, '/') as parts, current_timestamp() as noted_at, false as {IS_DELETED}
from {{decisions}} where {IS_REMEMBERED}"""


def _each(pattern: str, layout: OdsLayout) -> str:
    return ", ".join(pattern.format(name) for name in layout.rank_columns)
