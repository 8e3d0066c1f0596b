"""Values that an event does not contain because they had not changed. Owns finding them in earlier versions.

PostgreSQL does not log TOASTed values that an update did not change, some tools send only changed columns. Such a
value is, in this order: what the row before says, what an earlier event of the batch said, what the table holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sqlmesh_like.cdc.formats.literal_frame import frame_query
from sqlmesh_like.cdc.formats.source_types import quoted_name, sql_literal
from sqlmesh_like.cdc.schema.ods_layout import POSITION, OdsLayout
from sqlmesh_like.names import KEY

_GONE = ": the source did not log this value, and no earlier version of the row is known"
# PostgreSQL logs the delete of the old key first: by the time the new row comes, what it had is gone.
_GONE += (
    " (its key changed? set REPLICA IDENTITY FULL at the source, update the row there, then replay the dead letters)"
)
_LOST = ": the source did not log this value, and an earlier event of the row is a dead letter"


def with_unchanged_values(
    events: DataFrame, layout: OdsLayout, stored: DataFrame | None, letter_rows: DataFrame | None = None
) -> DataFrame:
    """Events (grain: event) whose `missing` columns hold their values; those that nobody knows become bad, with reason.

    `stored` is the table as it is, None where it is not there yet. Reads its keys, so only for batches that need it.
    `letter_rows`: dead letters of the table as they are kept; what such an event would have changed nobody knows.
    """
    columns = [row[0] for row in events.selectExpr("explode(missing)").distinct().collect()]
    spark = events.sparkSession
    keyed = events.selectExpr("*", f"{layout.record_key('row')} as fill_key", f"{_rank(layout)} as fill_rank")
    wanted = keyed.where("size(missing) > 0 and reason is null").select("fill_key").distinct()
    own = keyed.join(wanted, "fill_key", "left_semi")
    others = keyed.join(wanted, "fill_key", "left_anti")
    known = frame_query(spark, _known(columns, layout), events=own)
    if stored is not None:
        standing = _stored(layout, columns, _with_letters(stored, letter_rows))
        known = known.unionByName(standing.join(wanted, "fill_key", "left_semi"))
    latest = frame_query(spark, _latest(columns), known=known).where("is_event")
    joined = own.join(latest, ["fill_key", "position"])
    return joined.selectExpr(*_replaced(events, layout, columns)).unionByName(others.select(*events.columns))


def _rank(layout: OdsLayout) -> str:
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    orders = "".join(f"{order} as {quoted_name(name)}, " for order, name in named)
    return f"struct(1 as known_later, {orders}position)"


def _known(columns: Sequence[str], layout: OdsLayout) -> str:
    """Each event of a key with the values that it does bring, wrapped, so that NULL is a value too."""
    types = {column.name: column.type or "string" for column in layout.columns}
    values = ", ".join(f"{_value(name, types[name])} as v{index}" for index, name in enumerate(columns))
    return f"select fill_key, position, true as is_event, fill_rank, {values} from {{events}}"


def _value(name: str, kind: str) -> str:
    """`is_lost`: a bad event may have changed the value."""
    after, before = (f"struct({image}.{quoted_name(name)} as v, false as is_lost)" for image in ("row", "before"))
    lost = f"struct(cast(null as {kind}) as v, true as is_lost)"
    brings = f"kind = 'upsert' and not array_contains(missing, {sql_literal(name)})"
    known_value = f"when {brings} then {after} when before.{quoted_name(name)} is not null then {before}"
    return f"case when reason is not null then {lost} {known_value} end"


def _with_letters(stored: DataFrame, letter_rows: DataFrame | None) -> DataFrame:
    """Stored rows and whether a dead letter came to their key since (`is_lost`)."""
    if letter_rows is None:
        return stored.selectExpr("*", "false as is_lost")
    latest = letter_rows.where("row_key is not null").groupBy("row_key").agg({"place": "max"}).toDF("row_key", "letter")
    keyed = stored.join(latest, stored[KEY] == latest["row_key"], "left")
    return keyed.selectExpr(*map(quoted_name, stored.columns), f"coalesce(letter > {POSITION}, false) as is_lost")


def _stored(layout: OdsLayout, columns: Sequence[str], stored: DataFrame) -> DataFrame:
    has = {name.lower() for name in stored.columns}
    types = {column.name: column.type for column in layout.columns}
    orders = ", ".join(quoted_name(name) for name in layout.order_columns[:-1])
    # Without an order a later run always wins, so what is stored comes before every event.
    later = 1 if layout.order_columns else 0
    rank = f"struct({later} as known_later, {orders + ', ' if orders else ''}{POSITION} as position)"
    values = (
        f"struct(cast({quoted_name(name) if name.lower() in has else 'null'} as {types[name]}) as v, "
        f"is_lost) as v{index}"
        for index, name in enumerate(columns)
    )
    keyed = (f"{KEY} as fill_key", f"{POSITION} as position", "false as is_event", f"{rank} as fill_rank")
    return stored.selectExpr(*keyed, *values)


def _latest(columns: Sequence[str]) -> str:
    over = "over (partition by fill_key order by fill_rank rows between unbounded preceding and current row)"
    values = ", ".join(f"last(v{index}, true) {over} as v{index}" for index, _ in enumerate(columns))
    is_stored = "max(not is_event) over (partition by fill_key) as is_stored"
    return f"select fill_key, position, is_event, {is_stored}, {values} from {{known}}"


def _replaced(events: DataFrame, layout: OdsLayout, columns: Sequence[str]) -> list[str]:
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
    is_lost = " or ".join(f"coalesce(v{index}.is_lost, false)" for index in places.values())
    gone = f"if({is_lost}, {sql_literal(_LOST)}, {sql_literal(_GONE)})"
    why = f"concat(nullif(concat_ws(', ', {unknown}), ''), {gone})"
    replaced = {
        "row": row,
        "after": f"if(kind = 'delete', after, {row})",
        "reason": f"coalesce(reason, {why})",
    }
    return [f"{replaced[name]} as {name}" if name in replaced else name for name in events.columns]


def _is_unknown(name: str, index: int) -> str:
    # Where the table knows the row but no value, it holds a later version, to which this event loses anyway.
    is_lost = f"coalesce(v{index}.is_lost, not is_stored)"
    return f"array_contains(missing, {sql_literal(name)}) and {is_lost}"
