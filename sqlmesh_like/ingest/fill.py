"""Values that an event does not bring because they had not changed. Owns finding them in earlier versions of the row.

PostgreSQL logs no TOASTed value that an update left alone, some tools send changed columns only. Such a value is, in
this order: what the row before says, what an earlier event of the batch said, what the table holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from sqlmesh_like.ingest.layout import POSITION, Layout
from sqlmesh_like.ingest.types import literal, quoted

_GONE = ": the source did not log this value, and no earlier version of the row is known"


def filled(events: DataFrame, layout: Layout, stored: DataFrame | None) -> DataFrame:
    """Events (grain: event) whose `missing` columns hold their values; those that nobody knows become bad, with reason.

    `stored` is the table as it is, None where it is not there yet. Reads its keys, so only for batches that need it.
    """
    columns = [row[0] for row in events.selectExpr("explode(missing)").distinct().collect()]
    spark = events.sparkSession
    keyed = events.selectExpr("*", f"{layout.key('row')} as fill_key", f"{_rank(layout)} as fill_rank")
    wanted = keyed.where("size(missing) > 0 and reason is null").select("fill_key").distinct()
    own = keyed.join(wanted, "fill_key", "left_semi")
    others = keyed.join(wanted, "fill_key", "left_anti")
    known = spark.sql(_known(columns), events=own)
    if stored is not None:
        known = known.unionByName(_stored(layout, columns, stored).join(wanted, "fill_key", "left_semi"))
    latest = spark.sql(_latest(columns), known=known).where("is_event")
    joined = own.join(latest, ["fill_key", "position"])
    return joined.selectExpr(*_replaced(events, layout, columns)).unionByName(others.select(*events.columns))


def _rank(layout: Layout) -> str:
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    orders = "".join(f"{order} as {quoted(name)}, " for order, name in named)
    return f"struct(1 as known_later, {orders}position)"


def _known(columns: Sequence[str]) -> str:
    """Each event of a key with the values that it does bring, wrapped, so that NULL is a value too."""
    values = ", ".join(f"{_value(name)} as v{index}" for index, name in enumerate(columns))
    return f"select fill_key, position, true as is_event, fill_rank, {values} from {{events}}"


def _value(name: str) -> str:
    after, before = f"struct(row.{quoted(name)} as v)", f"struct(before.{quoted(name)} as v)"
    brings = f"kind = 'upsert' and reason is null and not array_contains(missing, {literal(name)})"
    return f"case when {brings} then {after} when before.{quoted(name)} is not null then {before} end"


def _stored(layout: Layout, columns: Sequence[str], stored: DataFrame) -> DataFrame:
    has = {name.lower() for name in stored.columns}
    types = {column.name: column.type for column in layout.columns}
    orders = ", ".join(quoted(name) for name in layout.order_columns[:-1])
    # Without an order a later run always wins, so what is stored comes before every event.
    later = 1 if layout.order_columns else 0
    rank = f"struct({later} as known_later, {orders + ', ' if orders else ''}{POSITION} as position)"
    values = (
        f"struct(cast({quoted(name) if name.lower() in has else 'null'} as {types[name]}) as v) as v{index}"
        for index, name in enumerate(columns)
    )
    keyed = (f"{layout.key('row')} as fill_key", f"{POSITION} as position", "false as is_event", f"{rank} as fill_rank")
    return stored.selectExpr("*", f"{layout.stored_row(stored.columns)} as row").selectExpr(*keyed, *values)


def _latest(columns: Sequence[str]) -> str:
    over = "over (partition by fill_key order by fill_rank rows between unbounded preceding and current row)"
    values = ", ".join(f"last(v{index}, true) {over} as v{index}" for index, _ in enumerate(columns))
    is_stored = "max(not is_event) over (partition by fill_key) as is_stored"
    return f"select fill_key, position, is_event, {is_stored}, {values} from {{known}}"


def _replaced(events: DataFrame, layout: Layout, columns: Sequence[str]) -> list[str]:
    places = {name: index for index, name in enumerate(columns)}

    def value(name: str) -> str:
        own = f"row.{quoted(name)}"
        if name not in places:
            return own
        found = f"v{places[name]}.v"
        return f"if(array_contains(missing, {literal(name)}), {found}, {own})"

    fields = ", ".join(f"{literal(c.name)}, {value(c.name)}" for c in layout.columns)
    row = f"named_struct({fields})"
    unknown = ", ".join(f"if({_is_unknown(name, index)}, {literal(name)}, null)" for name, index in places.items())
    why = f"concat(nullif(concat_ws(', ', {unknown}), ''), {literal(_GONE)})"
    replaced = {
        "row": row,
        "after": f"if(kind = 'delete', after, {row})",
        "reason": f"coalesce(reason, {why})",
    }
    return [f"{replaced[name]} as {name}" if name in replaced else name for name in events.columns]


def _is_unknown(name: str, index: int) -> str:
    # Where the table knows the row but no value, it holds a later version, to which this event loses anyway.
    return f"array_contains(missing, {literal(name)}) and v{index} is null and not is_stored"
