"""Values that an event does not contain because they had not changed. Owns finding them in earlier versions.

PostgreSQL does not log TOASTed values that an update did not change; some tools send only changed columns. Such a
value comes from, in this order: the before image, an earlier event of the batch, the table. What the key has before a
row is inserted, or is moved to it by an update, is of another row, as is what a deleted one had (PostgreSQL logs a
changed key as a delete and an insert).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame, in_spark, union_frames
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.merge.earlier_versions import NO_REASON, WHY, stored_versions, with_earlier_values
from sqlmesh_like.cdc.merge.merge_sql import is_rekeyed
from sqlmesh_like.cdc.schema.ods_layout import POSITION, SOFT_DELETED, OdsLayout
from sqlmesh_like.names import KEY

_GONE = ": the source did not log this value, and no earlier version of the row is known"
# PostgreSQL logs the delete of the old key first: when the new row arrives, the old values are gone.
_GONE += (
    " (its key changed? let the source log full rows, in PostgreSQL by REPLICA IDENTITY FULL, update the row there, "
)
_GONE += "then replay the dead letters)"
_LOST = ": the source did not log this value, and an earlier event of the row is a dead letter"
_IS_UPSERT = "kind = 'upsert'"


def with_unchanged_values(
    events: Frame, layout: OdsLayout, stored: Frame | None, letter_rows: Frame | None = None, *, again: bool = False
) -> Frame:
    """Fill the `missing` columns of upserts (grain: event); one with a value that is unknown gets a `reason`.

    `stored`: the table, None before its first commit; its keys are read, so call this only for batches that need it.
    `letter_rows`: the table's stored dead letters; it is not known which values such an event would have changed. All
    are of one kind. `again`: the events are dead letters, and the table may have a later version of their rows, which
    stays whatever an inserted row is filled with.
    """
    columns = [row[0] for row in events.where(_IS_UPSERT).selectExpr("explode(missing) as name").distinct().collect()]
    if not columns:
        return events
    known: Frame | None = None
    if isinstance(events, RowFrame) and letter_rows is not None:
        raise NotProvenError("events leave values out, and events of their table are dead letters")
    if stored is not None:
        why = f"if({SOFT_DELETED}, {sql_literal(_GONE)}, {WHY})" if layout.ingest.deletes == "soft" else WHY
        known = stored_versions(_with_letters(stored, letter_rows), columns, layout, why)
    types = {column.name: column.type or "string" for column in layout.columns}
    told = {name: _value(name, types[name], layout, again=again) for name in columns}
    wanted = f"size(missing) > 0 and reason is null and {_IS_UPSERT}"
    joined, others = with_earlier_values(events, wanted, columns, layout, told, known)
    return union_frames([joined.selectExpr(*_filled_columns(events, layout, columns)), others.select(*events.columns)])


def _value(name: str, kind: str, layout: OdsLayout, *, again: bool) -> str:
    """Spark SQL of an event's value as a struct, NULL where it has none. `why` the value is not known, or NULL."""
    after, before = (f"struct({image}.{quoted_name(name)} as v, {NO_REASON} as why)" for image in ("row", "before"))
    lost, gone = (f"struct(cast(null as {kind}) as v, {sql_literal(why)} as why)" for why in (_LOST, _GONE))
    brings = f"kind = 'upsert' and not array_contains(missing, {sql_literal(name)})"
    known_value = f"when {brings} then {after} when before.{quoted_name(name)} is not null then {before}"
    # With retention the row that an earlier delete left behind is still there.
    is_retained = layout.ingest.deletes == "retention"
    is_first = "op <> 'u'" if is_retained else "op in ('c', 'r')"
    comes = f"when {is_first} or {is_rekeyed(layout)} then {gone}" if is_retained or not again else ""
    return f"case when reason is not null then {lost} when kind = 'delete' then {gone} {known_value} {comes} end"


def _with_letters(stored: Frame, letter_rows: Frame | None) -> Frame:
    """Add `WHY` to stored rows: set where a later event of their key is a dead letter."""
    if letter_rows is None:
        return stored.selectExpr("*", f"{NO_REASON} as {WHY}")
    rows, letters = in_spark(stored), in_spark(letter_rows).where("row_key is not null")
    latest = letters.groupBy("row_key").agg({"place": "max"}).toDF("row_key", "letter")
    keyed = rows.join(latest, rows[KEY] == latest["row_key"], "left")
    why = f"if(letter > {POSITION}, {sql_literal(_LOST)}, null) as {WHY}"
    return keyed.selectExpr(*map(quoted_name, rows.columns), why)


def _filled_columns(events: Frame, layout: OdsLayout, columns: Sequence[str]) -> list[str]:
    places = {name: index for index, name in enumerate(columns)}

    def value(name: str) -> str:
        own = f"row.{quoted_name(name)}"
        if name not in places:
            return own
        result = f"v{places[name]}.v"
        return f"if({_IS_UPSERT} and array_contains(missing, {sql_literal(name)}), {result}, {own})"

    fields = ", ".join(f"{sql_literal(c.name)}, {value(c.name)}" for c in layout.columns)
    row = f"named_struct({fields})"
    unknown = ", ".join(f"if({_is_unknown(name, index)}, {sql_literal(name)}, null)" for name, index in places.items())
    is_lost = " or ".join(f"coalesce(v{index}.why = {sql_literal(_LOST)}, false)" for index in places.values())
    gone = f"if({is_lost}, {sql_literal(_LOST)}, {sql_literal(_GONE)})"
    why = f"concat(nullif(concat_ws(', ', {unknown}), ''), {gone})"
    replaced = {
        "row": row,
        "after": f"if(kind = 'delete', after, {row})",
        "reason": f"coalesce(reason, {why})",
    }
    return [f"{replaced[name]} as {name}" if name in replaced else name for name in events.columns]


def _is_unknown(name: str, index: int) -> str:
    # Where the table has the row but no value was found, its version is later, and this event loses to it anyway.
    is_known = f"if(v{index} is null, is_stored, v{index}.why is null)"
    return f"{_IS_UPSERT} and array_contains(missing, {sql_literal(name)}) and not {is_known}"
