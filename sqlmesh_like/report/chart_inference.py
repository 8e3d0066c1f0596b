"""Chooses a chart for rows. Owns the choice if none is declared; declared parts are kept and the rest is filled in."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlmesh_like.errors import Location
from sqlmesh_like.report.chart import TIME_LIKE, TOP, Chart, ChartKind, ChartRequest
from sqlmesh_like.run.ports import Rows

MOST_COLORS = 6
_NUMERIC = ("int", "bigint", "smallint", "tinyint", "float", "double", "decimal")
_KEY_LIKE = re.compile(r"(^|_)(id|key|code|no|year|month|day|hour|rank|number)s?$|^year_month$", re.IGNORECASE)
_TELLING = re.compile(r"revenue|total|amount|sales|sum|value|price", re.IGNORECASE)
_PERIOD = re.compile(r"\d{6}|\d{4}-\d{2}(-\d{2})?|\d{4}")


@dataclass(frozen=True)
class _Columns:
    """Columns of rows by their possible role in a chart, in their order."""

    measures: tuple[str, ...]
    times: tuple[str, ...]
    names: tuple[str, ...]


def infer_chart(rows: Rows, title: str, text: str = "", keys: Collection[str] = ()) -> Chart:
    """Return the most informative chart of rows; a table where no chart could show them all. `keys`: not measures."""
    return complete_chart(
        ChartRequest("", None, None, None, (), None, title, text, TOP, {}, Location("")), rows, title, keys
    )


def complete_chart(wanted: ChartRequest, rows: Rows, title: str, keys: Collection[str] = ()) -> Chart:
    """Return a declared chart with its missing parts inferred from the rows."""
    columns = _columns(rows, keys)
    # The first measure with a meaningful name such as `revenue`, else the first one; empty without measures.
    y = wanted.y or tuple(([name for name in columns.measures if _TELLING.search(name)] or list(columns.measures))[:1])
    kind, x, color = wanted.kind, wanted.x, wanted.color
    shown = tuple(column.name for column in rows.schema)
    if kind is None and not y:
        kind = "table"
    if kind is None and x is None and len(rows.rows) == 1:
        kind, y = "number", wanted.y or columns.measures
    if kind in (None, "line", "area", "bar", "point") and x is None:
        x, color = _axes(columns, rows, color)
        kind = "table" if x is None else kind
    if kind is None:
        kind = _kind(rows, x or "", columns)
    if kind == "table":
        x, color, y = None, None, wanted.y or shown
    if kind == "number":
        x, color, y = None, None, wanted.y or columns.measures or shown
    return Chart(kind, wanted.title or title, wanted.text, x, y, color, wanted.top)


def repeated_fields(chart: Chart, rows: Rows) -> tuple[str, ...]:
    """Return the columns that identify marks if several rows share a mark, which could not show them all; else none."""
    names = tuple(name for name in (chart.x, chart.color) if name is not None)
    return names if chart.kind in ("line", "area", "bar") and not _is_unique(rows, names) else ()


def _columns(rows: Rows, keys: Collection[str]) -> _Columns:
    measures, times, names = [], [], []
    for number, column in enumerate(rows.schema):
        type_ = column.type or ""
        values = [row[number] for row in rows.rows if row[number] is not None]
        if type_.startswith(("date", "timestamp")) or _is_period(column.name, values):
            times.append(column.name)
        elif type_.startswith(_NUMERIC) and not _is_key(column.name, keys):
            measures.append(column.name)
        elif type_.startswith((*_NUMERIC, "string", "boolean")):
            names.append(column.name)
    names.sort(key=lambda name: _type(rows, name).startswith(_NUMERIC))  # texts are more informative than numbers
    return _Columns(tuple(measures), tuple(times), tuple(names))


def _is_key(name: str, keys: Collection[str]) -> bool:
    """Whether a number is an identifier and not a quantity."""
    return name in keys or name.endswith("Id") or bool(_KEY_LIKE.search(name))


def _type(rows: Rows, name: str) -> str:
    return next(column.type or "" for column in rows.schema if column.name == name)


def _is_period(name: str, values: Sequence[object]) -> bool:
    texts = [str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool)]
    is_all = bool(texts) and len(texts) == len(values)
    return is_all and bool(TIME_LIKE.search(name)) and all(_PERIOD.fullmatch(text) for text in texts)


def _axes(columns: _Columns, rows: Rows, color: str | None) -> tuple[str | None, str | None]:
    """Return `x` and `color` that identify each row, since one mark cannot show two rows; None where there are none."""
    firsts = [*columns.times, *columns.names]
    for x in firsts:
        if color is None and _is_unique(rows, (x,)):
            return x, None
    for x in firsts:
        for second in (color,) if color else (*columns.names, *columns.times):
            if second != x and 1 < _count(rows, second) <= MOST_COLORS and _is_unique(rows, (x, second)):
                return x, second
    return None, None


def _kind(rows: Rows, x: str, columns: _Columns) -> ChartKind:
    return "line" if x in columns.times and _count(rows, x) > 3 else "bar"


def _values(rows: Rows, names: Sequence[str]) -> list[tuple[object, ...]]:
    at = [[column.name for column in rows.schema].index(name) for name in names]
    return [tuple(row[number] for number in at) for row in rows.rows]


def _count(rows: Rows, name: str) -> int:
    return len(set(_values(rows, (name,))))


def _is_unique(rows: Rows, names: Sequence[str]) -> bool:
    values = _values(rows, names)
    return len(set(values)) == len(values)
