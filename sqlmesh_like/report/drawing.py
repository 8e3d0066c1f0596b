"""A chart as SVG, drawn by Vega-Lite. Owns its specification, and that colours come from the page, light or dark.

The SVG is created here, so the page needs no library and no script to show it. Every colour in the specification is a
placeholder for one of the page (`_INKS`), and Vega's description of a mark for screen readers becomes its tooltip.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.errors import MachineError
from sqlmesh_like.report.chart import TIME_LIKE, Chart
from sqlmesh_like.report.text_summary import accessible_text, format_value
from sqlmesh_like.run.ports import Rows

_COLORS = 6
_INKS = {f"#01010{number}": f"var(--c{number})" for number in range(1, _COLORS + 1)} | {
    "#020201": "var(--soft)",
    "#020202": "var(--line)",
}
_SOFT, _LINE = "#020201", "#020202"
_RANGE = [f"#01010{number}" for number in range(1, _COLORS + 1)]
_MARKS = ("bar", "point", "circle", "rect")
_SPOKEN = re.compile(r' (?:role|aria-label|aria-roledescription)="[^"]*"')
_TAGGED = re.compile(r'(?: aria-label="(?P<label>[^"]*)")?(?: role="[^"]*")? aria-roledescription="(?P<what>[^"]*)"')
_MONTH, _DAY = re.compile(r"\d{4}-?(0[1-9]|1[0-2])"), re.compile(r"\d{4}-\d{2}-\d{2}")
_TIP = "sml tip"
"""Field that describes a row in words: the tooltip of its mark."""
_JAVASCRIPT_NAMES = frozenset(
    "__proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ constructor hasOwnProperty "
    "isPrototypeOf propertyIsEnumerable toLocaleString toString valueOf".split()
)
"""What every object of JavaScript has: Vega groups rows by such objects, and a row so named would end the drawing."""
_FEW_STEPS, _FEW_DAYS, _FEW_MONTHS = 6, 45, 24
"""Above these numbers Vega places labels further apart than one unit, day or month anyway."""
_BAR_HEIGHT, _LEAST, _HEIGHT = 26, 150, 230


def draw_svg(chart: Chart, rows: Rows, width: int, name: str) -> str:
    """Return the chart of these rows as SVG of this width; ids in it start with `name`, to be unique on a page.

    Raises MachineError where the drawing library is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        hint = "pip install 'sqlmesh_like[report]'"
        raise MachineError("charts are drawn by vl-convert-python, which is not installed", hint=hint) from None
    svg = str(vl_convert.vegalite_to_svg(json.dumps(_spelt_out(_specification(chart, rows, width)))))
    svg = re.sub(r'\bid="(clip|gradient)', rf'id="{name}-\1', svg)
    svg = re.sub(r"url\(#(clip|gradient)", rf"url(#{name}-\1", svg)
    svg = _SPOKEN.sub("", _TAGGED.sub(_tip, svg))
    for sign, ink in _INKS.items():
        svg = svg.replace(f'"{sign}"', f'"{ink}"')
    return re.sub(r"^<svg ", '<svg aria-hidden="true" focusable="false" ', svg)


def _spelt_out(value: object) -> object:
    """Return a value with control characters in its texts made visible: XML does not allow them."""
    match value:
        case str():
            return escape_line(value)
        case Mapping():
            return {escape_line(key): _spelt_out(item) for key, item in value.items()}
        case list() | tuple():
            return [_spelt_out(item) for item in value]
    return value


def _tip(match: re.Match[str]) -> str:
    label = match["label"]
    return f' data-tip="{label}"' if label and match["what"] in _MARKS else ""


def _specification(chart: Chart, rows: Rows, width: int) -> Mapping[str, object]:
    values, x = data_values(chart, rows), chart.x or ""
    time = _time(chart, rows)
    is_lying = chart.kind == "bar" and time is None and chart.color is None
    labels = {str(value[_field(x)]) for value in values}
    named: dict[str, object] = {"field": _field(x), "title": None, "type": "nominal", "sort": "ascending"}
    if is_lying:
        named |= {"sort": None, "axis": {"grid": False, "domain": False, "ticks": False, "labelLimit": width // 3}}
    elif time is None:
        angle = 0 if sum(len(label) * 7 + 12 for label in labels) < width else -40
        named["axis"] = {"grid": False, "labelAngle": angle}
    elif chart.kind == "bar":
        named |= {"type": "ordinal", "timeUnit": time.unit, "axis": {"format": time.format, "labelAngle": 0,
                  "labelOverlap": True, "grid": False}}  # fmt: skip
    else:
        named |= {
            "type": "temporal",
            "axis": {"grid": False, "labelOverlap": True, **_ticks(time, values, _field(x), width)},
        }
    measured = {"field": _field(chart.y[0]), "type": "quantitative", "title": None, "axis": _measure_axis(chart, rows)}
    encoding: dict[str, object] = {"y": named, "x": measured} if is_lying else {"x": named, "y": measured}
    encoding["description"] = {"field": _TIP, "type": "nominal"}
    encoding |= _colors(chart, width)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width, "height": max(_LEAST, len(labels) * _BAR_HEIGHT) if is_lying else _HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"}, "background": None,
        "data": {"values": values}, "encoding": encoding, "config": _CONFIG,
        "mark": _mark(chart, len(values), len(labels)),
    }  # fmt: skip


def _measure_axis(chart: Chart, rows: Rows) -> Mapping[str, object]:
    """Return the axis of values; a small range of whole numbers is labelled with whole numbers only."""
    number = [column.name for column in rows.schema].index(chart.y[0])
    drawn = [row[number] for row in rows.rows if row[number] is not None]
    whole = [int(value) for value in drawn if isinstance(value, int | float | Decimal) and not value % 1]
    low, high = min([0, *whole]), max([0, *whole])
    is_few = len(whole) == len(drawn) and high - low <= _FEW_STEPS
    # Vega would write zero with the unit of its neighbours: 0k.
    zero = {"labelExpr": "datum.value === 0 ? '0' : datum.label", "labelOverlap": True}
    return {
        "format": "~s", "tickCount": 5, "domain": False, "ticks": False, **zero,
        **({"values": list(range(low, high + 1))} if is_few else {}),
    }  # fmt: skip


def _ticks(time: _Time, values: Sequence[Mapping[str, object]], field: str, width: int) -> Mapping[str, object]:
    """Return the labels of a time axis; those of days and months are never at an hour between two of them."""
    room = width // 95
    moments = sorted(datetime.fromisoformat(str(value[field])) for value in values if value[field] is not None)
    if not moments or time.unit not in ("yearmonthdate", "yearmonth"):
        return {"tickCount": room}
    first, last = moments[0], moments[-1]
    days, months = (last - first).days, (last.year - first.year) * 12 + last.month - first.month
    if time.unit == "yearmonthdate" and days < _FEW_DAYS:
        step = -(-(days + 1) // room)
        places = [first + timedelta(days=each) for each in range(0, days + 1, step)]
        return {"values": [{"year": p.year, "month": p.month, "date": p.day} for p in places], "format": time.format}
    if time.unit == "yearmonth" and months < _FEW_MONTHS:
        step = -(-(months + 1) // room)
        numbers = [first.month - 1 + each for each in range(0, months + 1, step)]
        return {"values": [{"year": first.year + n // 12, "month": n % 12 + 1} for n in numbers], "format": time.format}
    return {"tickCount": room}


def _colors(chart: Chart, width: int) -> Mapping[str, object]:
    if chart.color is None:
        return {}
    legend = {"title": None, "orient": "top", "symbolType": "circle", "columns": 3 if width < 500 else 6}
    scale = {"range": _RANGE}
    color = {"field": _field(chart.color), "type": "nominal", "legend": legend, "scale": scale}
    return {"color": color, **({"xOffset": {"field": _field(chart.color)}} if chart.kind == "bar" else {})}


@dataclass(frozen=True)
class _Time:
    """How the times of a chart are truncated and formatted, in Vega's notation."""

    unit: str
    format: str


def _time(chart: Chart, rows: Rows) -> _Time | None:
    """Return how `x` is truncated and formatted if it is a time, else None. Days and months in texts are times too."""
    number = [column.name for column in rows.schema].index(chart.x or "")
    type_ = rows.schema[number].type or ""
    values = [row[number] for row in rows.rows if row[number] is not None]
    may_be = bool(values) and bool(TIME_LIKE.search(chart.x or ""))
    if may_be and all(_MONTH.fullmatch(str(value)) for value in values):
        return _Time("yearmonth", "%b %Y")
    if type_.startswith("timestamp"):
        return _Time("yearmonthdatehoursminutes", "%Y-%m-%d %H:%M")
    if type_.startswith("date") or (may_be and all(_DAY.fullmatch(str(value)) for value in values)):
        return _Time("yearmonthdate", "%Y-%m-%d")
    return None


def _mark(chart: Chart, count: int, labels: int) -> Mapping[str, object]:
    plain: dict[str, object] = {} if chart.color else {"color": _RANGE[0]}
    dots = {"size": 36 if count <= 40 else 14, "filled": True, **plain} if count <= 200 else False
    match chart.kind:
        case "line":
            return {"type": "line", "strokeWidth": 2.2, "point": dots, **plain}
        case "area":
            line = {"strokeWidth": 2, **plain}
            return {"type": "area", "opacity": 0.35, "line": line, **plain}
        case "point":
            return {"type": "point", "filled": True, "size": 60, "opacity": 0.85, **plain}
    stands_wide = labels <= 4 and chart.color is None
    return {"type": "bar", "cornerRadiusEnd": 3, **({"width": {"band": 0.36}} if stands_wide else {}), **plain}


_CONFIG: Mapping[str, object] = {
    "view": {"stroke": None},
    "axis": {
        "labelColor": _SOFT, "titleColor": _SOFT, "gridColor": _LINE, "domainColor": _LINE, "tickColor": _LINE,
        "labelFontSize": 11.5, "labelPadding": 6, "labelFont": "sans-serif",
    },
    "legend": {"labelColor": _SOFT, "labelFontSize": 12, "labelFont": "sans-serif", "symbolSize": 70},
    "bar": {"discreteBandSize": {"band": 0.72}},
}  # fmt: skip


def data_values(chart: Chart, rows: Rows) -> list[dict[str, object]]:
    """Return the rows to draw: for horizontal bars the largest ones, else all that have a value, in their order."""
    names = [column.name for column in rows.schema]
    at = {name: names.index(name) for name in chart.columns}
    first = at[chart.y[0]]
    kept = [row for row in rows.rows if row[first] is not None]
    has_times = chart.x is not None and _time(chart, rows) is not None
    if chart.kind == "bar" and chart.color is None and not has_times:
        kept = sorted(kept, key=lambda row: float(str(row[first])), reverse=True)[: chart.top]
    return [
        {
            **{_field(name): _value(row[number], has_times and name == chart.x) for name, number in at.items()},
            _TIP: "; ".join(f"{accessible_text(name)}: {format_value(row[number])}" for name, number in at.items()),
        }
        for row in kept
    ]


def _field(name: str) -> str:
    """Return a column's name as a Vega-Lite field, in which dots and brackets would have a meaning."""
    return re.sub(r"[.\[\]\\'\"]", "_", f"{name}_" if name in _JAVASCRIPT_NAMES else name)


def _value(value: object, is_time: bool) -> object:
    if is_time and value is not None:
        text = value.replace(tzinfo=None).isoformat() if isinstance(value, datetime) else str(value)
        if _MONTH.fullmatch(text):
            return f"{text[:4]}-{text[-2:]}-01T00:00:00"
        return text if "T" in text else f"{text}T00:00:00"  # a date without a time would be read as UTC
    match value:
        case Decimal():
            return float(value)
        case str() if value in _JAVASCRIPT_NAMES:
            return f"{value}\N{NO-BREAK SPACE}"
        case None | bool() | int() | float() | str():
            return value
    return str(value)
