"""What is known of a row when an event of it comes: the values of its earlier versions. Knows no rule about them.

Earlier is what the batch has before the event, and the table. Which values a version tells is said by the callers:
`unchanged_value_backfill` for what updates leave out, `deleted_rows` for what deletes leave out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from sqlmesh_like.cdc.formats.source_types import quoted_name
from sqlmesh_like.cdc.frames import Frame, frame_query, in_spark, union_frames
from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Value, order_of
from sqlmesh_like.cdc.schema.ods_layout import POSITION, OdsLayout
from sqlmesh_like.names import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_REASON = "cast(null as string)"
"""Spark SQL of `why` where a value is known."""
WHY = "_sml_why"
"""Column of stored rows: why their values are not known, or NULL."""


def with_earlier_values(
    events: Frame, wanted: str, columns: Sequence[str], layout: OdsLayout, told: Mapping[str, str], stored: Frame | None
) -> tuple[Frame, Frame]:
    """The events (grain: event) whose key has a `wanted` event, with the latest values of its versions; and the others.

    `wanted`: Spark SQL over an event. `told`: by column Spark SQL of what an event tells of it, a struct of the value
    `v` and of `why` it is not known; NULL if it tells nothing. `stored`: from `stored_versions`. Added are `v0` … (such
    a struct for each of the columns, the event's own included) and `is_stored`: whether the table has a row of the key.
    Raises NotProvenError where only Spark can say which of two versions is later.
    """
    named = zip(layout.orders("row"), layout.order_columns, strict=False)
    orders = "".join(f"{order} as {quoted_name(name)}, " for order, name in named)
    # The table may have the version that an event is, which then tells what it had been given.
    rank = f"struct(1 as known_later, {orders}position, 1 as turn)"
    keyed = events.selectExpr("*", f"{layout.record_key('row')} as fill_key", f"{rank} as fill_rank")
    values = ", ".join(f"{told[name]} as v{index}" for index, name in enumerate(columns))
    sql = f"select fill_key, position, true as is_event, fill_rank, {values} from {{events}}"
    if isinstance(keyed, RowFrame):
        return _found_here(keyed, wanted, len(columns), sql, cast("RowFrame | None", stored))
    return _found_by_spark(keyed, wanted, len(columns), sql, None if stored is None else in_spark(stored))


def stored_versions(stored: Frame, columns: Sequence[str], layout: OdsLayout, why: str) -> Frame:
    """The rows of the table as versions of their keys. `why`: Spark SQL over one: why its values are not known."""
    has = {name.lower() for name in stored.columns}
    types = {column.name: column.type for column in layout.columns}
    orders = ", ".join(quoted_name(name) for name in layout.order_columns[:-1])
    # Without an order the last run always wins, so stored rows come before every event.
    later = 1 if layout.order_columns else 0
    rank = f"struct({later} as known_later, {orders + ', ' if orders else ''}{POSITION} as position, 0 as turn)"
    values = (
        f"struct(cast({quoted_name(name) if name.lower() in has else 'null'} as {types[name]}) as v, "
        f"{why} as why) as v{index}"
        for index, name in enumerate(columns)
    )
    keyed = (f"{KEY} as fill_key", f"{POSITION} as position", "false as is_event", f"{rank} as fill_rank")
    return stored.selectExpr(*keyed, *values)


def _found_by_spark(
    keyed: DataFrame, wanted: str, count: int, sql: str, stored: DataFrame | None
) -> tuple[DataFrame, DataFrame]:
    keys = keyed.where(wanted).select("fill_key").distinct()
    own = keyed.join(keys, "fill_key", "left_semi")
    others = keyed.join(keys, "fill_key", "left_anti")
    known = in_spark(frame_query(sql, events=own))
    if stored is not None:
        known = known.unionByName(stored.join(keys, "fill_key", "left_semi"))
    over = "over (partition by fill_key order by fill_rank rows between unbounded preceding and current row)"
    values = ", ".join(f"last(v{index}, true) {over} as v{index}" for index in range(count))
    is_stored = "max(not is_event) over (partition by fill_key) as is_stored"
    query = f"select fill_key, position, is_event, {is_stored}, {values} from {{known}}"
    latest = in_spark(frame_query(query, known=known)).where("is_event")
    return own.join(latest, ["fill_key", "position"]), others


def _found_here(
    keyed: RowFrame, wanted: str, count: int, sql: str, stored: RowFrame | None
) -> tuple[RowFrame, RowFrame]:
    key, position = keyed.columns.index("fill_key"), keyed.columns.index("position")
    keys = {row[key] for row in keyed.where(wanted).rows} - {None}
    own = RowFrame(keyed.columns, [row for row in keyed.rows if row[key] in keys])
    others = RowFrame(keyed.columns, [row for row in keyed.rows if row[key] not in keys])
    known = frame_query(sql, events=own)
    if stored is not None:
        known = union_frames([known, stored])
    versions: dict[Value, list[tuple[Value, bool, Value, Sequence[Value]]]] = {}
    for fill_key, at, is_event, rank, *values in cast("RowFrame", known).rows:
        if fill_key in keys:
            versions.setdefault(fill_key, []).append((order_of(rank), is_event, at, values))
    latest: dict[tuple[Value, Value], list[Value]] = {}
    for fill_key, of_key in versions.items():
        if len({rank for rank, *_ in of_key}) < len(of_key):
            raise NotProvenError("two versions of a key at one place of the log")
        is_stored = not all(is_event for _, is_event, *_ in of_key)
        newest: list[Value] = [None] * count
        for _, is_event, at, brought in sorted(of_key, key=itemgetter(0)):
            newest = [old if value is None else value for value, old in zip(brought, newest, strict=True)]
            if is_event:
                latest[fill_key, at] = [is_stored, *newest]
    names = (*keyed.columns, "is_stored", *(f"v{index}" for index in range(count)))
    return RowFrame(names, [[*row, *latest[row[key], row[position]]] for row in own.rows]), others
