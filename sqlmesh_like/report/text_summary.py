"""A chart in words and numbers, for readers who cannot see it or want details. Owns how values are formatted."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from sqlmesh_like.control_characters import escape_line
from sqlmesh_like.report.chart import Chart
from sqlmesh_like.run.ports import Rows

SHOWN_ROWS = 100


def summarize(chart: Chart, rows: Rows) -> str:
    """Describe the chart in a sentence or two."""
    if not rows.rows:
        return f"{chart.title}: there are no rows yet."
    if chart.kind in ("number", "table"):
        return f"{chart.title}: {len(rows.rows)} rows of {', '.join(map(accessible_text, chart.y))}."
    names = [column.name for column in rows.schema]
    x, y = names.index(chart.x or ""), names.index(chart.y[0])
    valued = [row for row in rows.rows if row[y] is not None]
    if not valued:
        return f"{chart.title}: {accessible_text(chart.y[0])} is empty in all {len(rows.rows)} rows."
    ordered = sorted(valued, key=lambda row: float(str(row[y])))
    by = f" and {accessible_text(chart.color)}" if chart.color else ""
    said = f"{accessible_text(chart.y[0])} by {accessible_text(chart.x or '')}{by}, {len(rows.rows)} values"
    largest, smallest = (f"{format_value(row[y])} ({format_value(row[x])})" for row in (ordered[-1], ordered[0]))
    return f"{said[:1].upper()}{said[1:]}. Largest {largest}, smallest {smallest}."


def accessible_text(name: str) -> str:
    """Return a column's name as words.

    >>> accessible_text("year_month")
    'year month'
    """
    return name.replace("_", " ").strip()


def title_text(name: str) -> str:
    """Return a table's name as a heading.

    >>> title_text("revenue_by_month")
    'Revenue by month'
    """
    text = accessible_text(name)
    return text[:1].upper() + text[1:]


def format_value(value: object) -> str:
    """Return a value for people: with separators of thousands, and times in UTC.

    >>> format_value(Decimal("12345.50")), format_value(None), format_value(0.1 + 0.2)
    ('12,345.50', '–', '0.3')
    """
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int() | Decimal():
            return f"{value:,}"
        case float():
            return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).strftime("%Y-%m-%d %H:%M:%S")
        case date():
            return value.isoformat()
    return escape_line(str(value))
