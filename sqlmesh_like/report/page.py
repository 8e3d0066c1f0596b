"""The page: charts, their texts and their numbers in one HTML file. Owns how it is assembled.

It sends no requests, which its policy forbids, and shows everything without its script, which only adds tooltips and
the choice between light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from sqlmesh_like.inline_html import policy_hash, read_asset
from sqlmesh_like.report.chart import Chart
from sqlmesh_like.report.drawing import draw_svg
from sqlmesh_like.report.text_summary import SHOWN_ROWS, accessible_text, format_value, summarize
from sqlmesh_like.run.ports import Rows

WIDE, NARROW = 560, 330
"""Widths in which each chart is drawn; the page shows the one that fits."""


@dataclass(frozen=True)
class DrawnChart:
    """A chart with its rows and their origin, a table or a query. `is_cut`: there are more rows than these."""

    chart: Chart
    rows: Rows
    table: str | None = None
    query: str | None = None
    is_cut: bool = False


@dataclass(frozen=True)
class ReportHeading:
    """The heading above the charts. `facts` are pairs of a label and a value."""

    title: str
    text: str
    facts: tuple[tuple[str, str], ...]


def report_page(heading: ReportHeading, charts: Sequence[DrawnChart]) -> str:
    """Return the report as HTML, deterministic for given rows. Raises MachineError without the drawing library."""
    style, script = read_asset(__package__, "report.css"), read_asset(__package__, "report.js")
    policy = (
        f"default-src 'none'; script-src {policy_hash(script)}; style-src {policy_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(read_asset(__package__, "page.html"))
    return template.render(
        policy=policy, heading=heading, style=Markup(style), script=Markup(script),
        charts=[_chart_context(number, each) for number, each in enumerate(charts, 1)],
    )  # fmt: skip


def _chart_context(number: int, drawn: DrawnChart) -> dict[str, object]:
    chart, rows = drawn.chart, drawn.rows
    names = [column.name for column in rows.schema]
    kept = chart.y if chart.kind == "table" else (chart.columns or tuple(names))
    at = [names.index(name) for name in kept]
    numeric = [_is_number(rows, each) for each in at]
    is_drawn = chart.kind not in ("number", "table") and bool(rows.rows)
    widths = (("wide", WIDE), ("narrow", NARROW)) if is_drawn else ()
    return {
        "id": f"c{number}", "title": chart.title, "text": chart.text, "kind": chart.kind,
        "table": drawn.table, "query": drawn.query,
        "summary": summarize(chart, rows),
        "plots": [(name, Markup(draw_svg(chart, rows, width, f"c{number}{name}"))) for name, width in widths],
        "numbers": _numbers(chart, rows) if chart.kind == "number" and rows.rows else [],
        "columns": list(zip([accessible_text(name) for name in kept], numeric, strict=True)),
        "rows": [[(format_value(row[each]), is_right) for each, is_right in zip(at, numeric, strict=True)]
                 for row in rows.rows[:SHOWN_ROWS]],
        "rest": "more" if drawn.is_cut else max(0, len(rows.rows) - SHOWN_ROWS),
    }  # fmt: skip


def _numbers(chart: Chart, rows: Rows) -> list[tuple[str, str]]:
    names = [column.name for column in rows.schema]
    return [(accessible_text(name), format_value(rows.rows[0][names.index(name)])) for name in chart.y]


def _is_number(rows: Rows, at: int) -> bool:
    return all(row[at] is None or isinstance(row[at], int | float) or hasattr(row[at], "as_tuple") for row in rows.rows)
