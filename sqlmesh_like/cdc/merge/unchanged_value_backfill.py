"""Values that an event does not contain because they had not changed. Owns finding them in earlier versions.

PostgreSQL does not log TOASTed values that an update did not change; some tools send only changed columns. Such a
value comes from, in this order: the before image, an earlier event of the batch, the table. What the key has before a
row is inserted, or is moved to it by an update, is of another row, as is what a deleted one had (PostgreSQL logs a
changed key as a delete and an insert).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.frames import Frame, frame_query, in_spark, union_frames
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Value, order_of
from sqlmesh_like.cdc.merge.merge_sql import is_rekeyed
from sqlmesh_like.cdc.schema.ods_layout import POSITION, SOFT_DELETED, OdsLayout
from sqlmesh_like.names import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_GONE = ": the source did not log this value, and no earlier version of the row is known"
# PostgreSQL logs the delete of the old key first: when the new row arrives, the old values are gone.
_GONE += (
    " (its key changed? let the source log full rows, in PostgreSQL by REPLICA IDENTITY FULL, update the row there, "
)
_GONE += "then replay the dead letters)"
_LOST = ": the source did not log this value, and an earlier event of the row is a dead letter"
_KNOWN = "cast(null as string)"
_WHY = "_sml_why"
"""Column of stored rows: why their values are not known, or NULL."""


def with_unchanged_values(
    events: Frame, layout: OdsLayout, stored: Frame | None, letter_rows: Frame | None = None, *, again: bool = False
) -> Frame:
    """Fill the `missing` columns of events (grain: event); an event with a value that is unknown gets a `reason`.

    `stored`: the table, None before its first commit; its keys are read, so call this only for batches that need it.
    `letter_rows`: the table's stored dead letters; it is not known which values such an event would have changed. All
    are of one kind. `again`: the events are dead letters, and the table may have a later version of their rows, which
    stays whatever an inserted row is filled with.
    """
    columns = [row[0] for row in events.selectExpr("explode(missing) as name").distinct().collect()]
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    orders = "".join(f"{order} as {quoted_name(name)}, " for order, name in named)
    rank = f"struct(1 as known_later, {orders}position)"
    keyed = events.selectExpr("*", f"{layout.record_key('row')} as fill_key", f"{rank} as fill_rank")
    joined: Frame
    others: Frame
    if isinstance(keyed, RowFrame):
        if letter_rows is not None:
            raise NotProvenError("events leave values out, and events of their table are dead letters")
        joined, others = _joined_here(keyed, columns, layout, cast("RowFrame | None", stored), again=again)
    else:
        dead_letters = None if letter_rows is None else in_spark(letter_rows)
        rows = None if stored is None else in_spark(stored)
        joined, others = _join_known_values(keyed, columns, layout, rows, dead_letters, again=again)
    return union_frames([joined.selectExpr(*_filled_columns(events, layout, columns)), others.select(*events.columns)])


def _join_known_values(
    keyed: DataFrame,
    columns: Sequence[str],
    layout: OdsLayout,
    stored: DataFrame | None,
    letter_rows: DataFrame | None,
    *,
    again: bool,
) -> tuple[DataFrame, DataFrame]:
    """Events of keys with values to fill, with the latest known values (`v0` …) and `is_stored`; and the others."""
    wanted = keyed.where("size(missing) > 0 and reason is null").select("fill_key").distinct()
    own = keyed.join(wanted, "fill_key", "left_semi")
    others = keyed.join(wanted, "fill_key", "left_anti")
    known = in_spark(frame_query(_event_values_sql(columns, layout, again=again), events=own))
    if stored is not None:
        standing = in_spark(_stored_values(layout, columns, _with_letters(stored, letter_rows)))
        known = known.unionByName(standing.join(wanted, "fill_key", "left_semi"))
    over = "over (partition by fill_key order by fill_rank rows between unbounded preceding and current row)"
    values = ", ".join(f"last(v{index}, true) {over} as v{index}" for index, _ in enumerate(columns))
    is_stored = "max(not is_event) over (partition by fill_key) as is_stored"
    query = f"select fill_key, position, is_event, {is_stored}, {values} from {{known}}"
    latest = in_spark(frame_query(query, known=known)).where("is_event")
    return own.join(latest, ["fill_key", "position"]), others


def _joined_here(
    keyed: RowFrame, columns: Sequence[str], layout: OdsLayout, stored: RowFrame | None, *, again: bool
) -> tuple[RowFrame, RowFrame]:
    """`_join_known_values` over rows of this process. Raises NotProvenError for two versions of a key at one place."""
    key, position = keyed.columns.index("fill_key"), keyed.columns.index("position")
    unfilled = keyed.where("size(missing) > 0 and reason is null").rows
    wanted = {row[key] for row in unfilled} - {None}
    own = RowFrame(keyed.columns, [row for row in keyed.rows if row[key] in wanted])
    others = RowFrame(keyed.columns, [row for row in keyed.rows if row[key] not in wanted])
    known = frame_query(_event_values_sql(columns, layout, again=again), events=own)
    if stored is not None:
        known = union_frames([known, _stored_values(layout, columns, stored.selectExpr("*", f"{_KNOWN} as {_WHY}"))])
    versions: dict[Value, list[tuple[Value, bool, Value, Sequence[Value]]]] = {}
    for fill_key, at, is_event, rank, *values in cast("RowFrame", known).rows:
        if fill_key in wanted:
            versions.setdefault(fill_key, []).append((order_of(rank), is_event, at, values))
    latest: dict[tuple[Value, Value], list[Value]] = {}
    for fill_key, of_key in versions.items():
        if len({rank for rank, *_ in of_key}) < len(of_key):
            raise NotProvenError("two versions of a key at one place of the log")
        is_stored = not all(is_event for _, is_event, *_ in of_key)
        newest: list[Value] = [None] * len(columns)
        for _, is_event, at, brought in sorted(of_key, key=itemgetter(0)):
            newest = [old if value is None else value for value, old in zip(brought, newest, strict=True)]
            if is_event:
                latest[fill_key, at] = [is_stored, *newest]
    names = (*keyed.columns, "is_stored", *(f"v{index}" for index, _ in enumerate(columns)))
    return RowFrame(names, [[*row, *latest[row[key], row[position]]] for row in own.rows]), others


def _event_values_sql(columns: Sequence[str], layout: OdsLayout, *, again: bool) -> str:
    """SQL of each event with the values that it contains, wrapped in structs so that a NULL counts as a value."""
    types = {column.name: column.type or "string" for column in layout.columns}
    values = ", ".join(
        f"{_value(name, types[name], layout, again=again)} as v{index}" for index, name in enumerate(columns)
    )
    return f"select fill_key, position, true as is_event, fill_rank, {values} from {{events}}"


def _value(name: str, kind: str, layout: OdsLayout, *, again: bool) -> str:
    """Spark SQL of an event's value as a struct, NULL where it has none. `why` the value is not known, or NULL."""
    after, before = (f"struct({image}.{quoted_name(name)} as v, {_KNOWN} as why)" for image in ("row", "before"))
    lost, gone = (f"struct(cast(null as {kind}) as v, {sql_literal(why)} as why)" for why in (_LOST, _GONE))
    brings = f"kind = 'upsert' and not array_contains(missing, {sql_literal(name)})"
    known_value = f"when {brings} then {after} when before.{quoted_name(name)} is not null then {before}"
    # With retention the row that an earlier delete left behind is still there.
    is_retained = layout.ingest.deletes == "retention"
    is_first = "op <> 'u'" if is_retained else "op in ('c', 'r')"
    comes = f"when {is_first} or {is_rekeyed(layout)} then {gone}" if is_retained or not again else ""
    return f"case when reason is not null then {lost} when kind = 'delete' then {gone} {known_value} {comes} end"


def _with_letters(stored: DataFrame, letter_rows: DataFrame | None) -> DataFrame:
    """Add `_WHY` to stored rows: set where a later event of their key is a dead letter."""
    if letter_rows is None:
        return stored.selectExpr("*", f"{_KNOWN} as {_WHY}")
    latest = letter_rows.where("row_key is not null").groupBy("row_key").agg({"place": "max"}).toDF("row_key", "letter")
    keyed = stored.join(latest, stored[KEY] == latest["row_key"], "left")
    why = f"if(letter > {POSITION}, {sql_literal(_LOST)}, null) as {_WHY}"
    return keyed.selectExpr(*map(quoted_name, stored.columns), why)


def _stored_values(layout: OdsLayout, columns: Sequence[str], stored: Frame) -> Frame:
    has = {name.lower() for name in stored.columns}
    types = {column.name: column.type for column in layout.columns}
    orders = ", ".join(quoted_name(name) for name in layout.order_columns[:-1])
    # Without an order the last run always wins, so stored rows come before every event.
    later = 1 if layout.order_columns else 0
    rank = f"struct({later} as known_later, {orders + ', ' if orders else ''}{POSITION} as position)"
    why = f"if({SOFT_DELETED}, {sql_literal(_GONE)}, {_WHY})" if layout.ingest.deletes == "soft" else _WHY
    values = (
        f"struct(cast({quoted_name(name) if name.lower() in has else 'null'} as {types[name]}) as v, "
        f"{why} as why) as v{index}"
        for index, name in enumerate(columns)
    )
    keyed = (f"{KEY} as fill_key", f"{POSITION} as position", "false as is_event", f"{rank} as fill_rank")
    return stored.selectExpr(*keyed, *values)


def _filled_columns(events: Frame, layout: OdsLayout, columns: Sequence[str]) -> list[str]:
    places = {name: index for index, name in enumerate(columns)}

    def value(name: str) -> str:
        own = f"row.{quoted_name(name)}"
        if name not in places:
            return own
        result = f"v{places[name]}.v"
        return f"if(array_contains(missing, {sql_literal(name)}), {result}, {own})"

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
    return f"array_contains(missing, {sql_literal(name)}) and not {is_known}"
