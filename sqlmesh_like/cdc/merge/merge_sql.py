"""One final action per key out of a batch. Owns the order of events and where rows must vanish; knows no engine.

Every event is a version of its key, ordered by (order_by, position). The newest version a key ever had decides: its row
is stored in exactly one partition, or nowhere. `floors` remember, for keys that were deleted or moved, the newest such
version, so that a late event can neither resurrect a row nor leave a second copy of it elsewhere. Taking a batch in
twice gives the same state: ties go to the batch.

All texts are Spark SQL over named relations in braces, as `frame_query(session, text, name=frame)` takes them.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.schema.ods_layout import LINE_DIGITS, POSITION, SOFT_DELETED, OdsLayout
from sqlmesh_like.names import IS_DELETED, KEY

IS_REMEMBERED = "not is_late and (w.removed or size(parts) > 1)"
"""Of a decision: its key was deleted or moved."""


def is_rekeyed(layout: OdsLayout) -> str:
    """Spark SQL: whether an event changes its row's primary key."""
    if not layout.has_key:
        # Without a primary key nothing can change one: the position is the key.
        return "false"
    has_old_key = f"before is not null and {layout.missing_key('before')} is null"
    return f"kind = 'upsert' and {has_old_key} and {layout.key('before')} != {layout.key('after')}"


def versions(layout: OdsLayout, *, with_rekeyed: bool = True) -> str:
    """From `{{events}}` (grain: event): every version (grain: key × position), with all partitions it names.

    An update that changes a primary key is also a delete of the old key.
    """
    record_key = layout.record_key("row")
    same_key = f"other is not null and {layout.key('other')} = {layout.key('row')}"
    named = zip(layout.orders("ordered"), layout.order_columns, strict=False)
    orders = "".join(f", {order} as {name}" for order, name in named)
    # A row before that is only the key has no order of its own, and does not say where it stood.
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


def truncated(
    layout: OdsLayout, position: str, *, origin: str | None, stored: Collection[str] | None, in_order: bool
) -> str:
    """From `{{versions}}` and `{{stored}}`: a delete of every row that stood when the source's table was emptied.

    Each is a version of its own row with the place of the truncate in the log. `stored` are the columns of the table
    as it is (None: it is not there). `in_order`: the whole log has one order; else only what shares a partition of it.
    """
    at = sql_literal(position)
    of = (
        f" and row.{quoted_name(layout.ingest.origin)} = {sql_literal(origin)}"
        if origin and layout.ingest.origin
        else ""
    )
    orders = "".join(f", {name}" for name in layout.order_columns[:-1])
    result = f"""
select {KEY}, row, true as removed, false as lacks_before_position, {at} as {POSITION}{orders}, part, parts
from {{versions}} where not removed and {POSITION} < {at}{of}"""
    if stored is None:
        return result
    earlier = f"{POSITION} < {at}"
    if not in_order:
        earlier += f" or substring_index({POSITION}, '|', 2) != substring_index({at}, '|', 2)"
    part = quoted_name(layout.partition_field) if layout.partition_field else "''"
    return f"""{result}
union all
select {KEY}, row, true, false, {at}{orders}, {part}, array({part})
from (select *, {layout.stored_row(stored)} as row from {{stored}}) where ({earlier}){of}"""


def stood(layout: OdsLayout) -> str:
    """From `{{stored}}` and `{{keys}}`: where rows of these keys stand and how new they are, as floors (grain: row)."""
    part = quoted_name(layout.partition_field) if layout.partition_field else "''"
    ranks = ", ".join(layout.rank_columns)
    return (
        f"select {KEY}, {ranks}, {part} as part, {part} as parts from {{stored}} left semi join {{keys}} using ({KEY})"
    )


def places(layout: OdsLayout) -> str:
    """From `{{stored}}` and `{{keys}}`: the partitions in which rows of these keys stand (grain: key)."""
    part = quoted_name(layout.partition_field) if layout.partition_field else "''"
    rows = f"select {KEY}, {part} as part from {{stored}} left semi join {{keys}} using ({KEY})"
    return f"select {KEY}, collect_set(part) as parts from ({rows}) group by {KEY}"


def united_versions(layout: OdsLayout) -> str:
    """From `{{floors}}` (grain: any): the newest of each key, with all places that any of them names (grain: key)."""
    ranks = ", ".join(layout.rank_columns)
    parts = "array_join(array_distinct(flatten(collect_list(split(parts, '/')))), '/')"
    newest = f"max_by(struct({ranks}, part), struct({ranks})) as m, {parts} as parts"
    result = f"select {KEY}, {newest} from {{floors}} group by {KEY}"
    return f"select {KEY}, {_each('m.{0} as {0}', layout)}, m.part as part, parts from ({result})"


def decisions(layout: OdsLayout, *, with_floors: bool, with_places: bool) -> str:
    """From `{{versions}}`, `{{floors}}` and `{{places}}` (where stored rows stand): one decision (grain: key).

    `w` is the newest version of the batch, `f` the floor; `is_late` says that the floor is newer.
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
    is_late = f"coalesce(struct({_each('w.{0}', layout)}) < struct({_each('f.{0}', layout)}), false)"
    return f"""
with newest as (
  select {KEY}, max_by(struct(row, removed, part, {order}), {rank}) as w,
    array_distinct(flatten(collect_list(parts))) as parts
  from {{versions}} group by {KEY}
)
select n.{KEY}, w, {parts} as parts, {is_late if with_floors else "false"} as is_late, {floor}
from newest n {joins}"""


def decisions_of_one(layout: OdsLayout) -> str:
    """From `{{events}}`, one of each key, of which nothing is known from before: one decision (grain: key)."""
    rank = ", ".join(layout.rank_columns)
    known = "false as is_late, null as floor_part"
    result = versions(layout, with_rekeyed=False)
    return f"select {KEY}, struct(row, removed, part, {rank}) as w, parts, {known} from ({result})"


def loaded(layout: OdsLayout, *, by_file: bool) -> str:
    """From `{{events}}`, one of each key: the rows of a table that has none yet (grain: key).

    `by_file`: they come from files in which nothing else can come to their keys, so the place of the file will do for
    theirs. A text of its own for each row takes longer to write than the row.
    """
    columns = [f"{layout.record_key('row')} as {KEY}"]
    columns += [f"row.{quoted_name(column.name)} as {quoted_name(column.name)}" for column in layout.columns]
    if layout.partition_field:
        columns.append(f"{layout.partition('row')} as {quoted_name(layout.partition_field)}")
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    columns += [f"{order} as {name}" for order, name in named]
    columns.append(f"{f'left(position, length(position) - {LINE_DIGITS})' if by_file else 'position'} as {POSITION}")
    is_soft = layout.ingest.deletes == "soft"
    if is_soft:
        columns.append(f"kind = 'delete' as {SOFT_DELETED}")
    columns.append(f"false as {IS_DELETED}")
    kept = "" if is_soft else " where kind <> 'delete'"
    return f"select {', '.join(columns)} from {{events}}{kept}"


def net_rows(layout: OdsLayout, *, with_floors: bool) -> str:
    """From `{{decisions}}`: the rows to upsert (grain: key × partition), deletes marked."""
    columns = [KEY, *(f"w.row.{quoted_name(column.name)} as {quoted_name(column.name)}" for column in layout.columns)]
    if layout.partition_field:
        columns.append(f"place as {quoted_name(layout.partition_field)}")
    for name in layout.rank_columns:
        columns.append(f"if(is_late, floor_{name}, w.{name}) as {name}" if with_floors else f"w.{name} as {name}")
    is_own = "not is_late and place = w.part"
    # By its order the newest row stays whatever is deleted; without one, a late event must touch nothing.
    late = "is_late and place <=> floor_part" if layout.order_columns else "is_late"
    if layout.ingest.deletes == "soft":
        columns += [f"{is_own} and w.removed as {SOFT_DELETED}", f"not ({is_own}) as {IS_DELETED}"]
    else:
        columns.append(f"not ({is_own}) or w.removed as {IS_DELETED}")
    # Without partitions every row stands in the same place.
    place = "explode(parts)" if layout.partition_field else "''"
    return f"""
select {", ".join(columns)}
from (select *, {place} as place from {{decisions}})
where not ({late})"""


def new_floors(layout: OdsLayout) -> str:
    """From `{{decisions}}`: the floors to remember (grain: key). `part` is NULL where the row is gone."""
    gone = "w.removed" if layout.ingest.deletes == "hard" else "false"
    return f"""
select {KEY}, {_each("w.{0} as {0}", layout)}, if({gone}, null, w.part) as part, array_join(parts, '/') as parts,
  current_timestamp() as noted_at, false as {IS_DELETED}
from {{decisions}} where {IS_REMEMBERED}"""


def _each(pattern: str, layout: OdsLayout) -> str:
    return ", ".join(pattern.format(name) for name in layout.rank_columns)
