"""Charts: columns, kind, texts. Owns the values, and their declaration in `report.yml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import choice, count, each, text, texts
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml
from sqlmesh_like.run.ports import Rows

ChartKind = Literal["line", "area", "bar", "point", "number", "table"]
FILE = "report.yml"
TOP = 15
"""Default number of bars that a chart shows, the largest ones."""
TIME_LIKE = re.compile(r"(^|_)(date|day|month|year|hour|time|week|quarter|at|ts)(_|$)", re.IGNORECASE)
"""Pattern of column names in which a text or number such as 202401 is a time."""
CHART = Shape("a chart", {
    "table": Key(text, help="The table that is drawn; or `sql`.", example="sales_by_day"),
    "sql": Key(text, help="A SELECT over all tables; or `table`.", example="select day, total from sales_by_day"),
    "kind": Key(choice(*get_args(ChartKind)), help="Default: by the columns.", example="line"),
    "x": Key(text, help="The column that is drawn from left to right.", example="day"),
    "y": Key(texts, help="The columns that are measured.", example=["total"]),
    "color": Key(text, help="The column that tells lines or bars apart.", example="region"),
    "title": Key(text, help="Its heading.", example="Sales by day"),
    "text": Key(text, "", help="What is said below the heading.", example="Orders count on the day they are made."),
    "top": Key(count(), TOP, help="So many bars are shown: the largest.", example=10),
})  # fmt: skip
REPORT = Shape(FILE, {
    "title": Key(text, help="Heading of the page.", example="The shop"),
    "text": Key(text, "", help="What is said below it.", example="What was sold, and to whom."),
    "charts": Key(each(CHART), is_required=True, help="The charts.", example=[{"table": "sales_by_day"}]),
})  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """One chart of the rows of a query. `y` are the measured columns; for a table, all that are shown.

    `x` and `color` None: there is none. Bars are vertical where `x` is a time or there is a `color`, else horizontal.
    """

    kind: ChartKind
    title: str
    text: str = ""
    x: str | None = None
    y: tuple[str, ...] = ()
    color: str | None = None
    top: int = TOP

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the chart needs, each once."""
        return tuple(dict.fromkeys(name for name in (self.x, self.color, *self.y) if name is not None))


@dataclass(frozen=True)
class ChartRequest:
    """A chart that a file declares, of a table or of a query. Missing parts are inferred from the rows."""

    query: str
    table: str | None
    kind: ChartKind | None
    x: str | None
    y: tuple[str, ...]
    color: str | None
    title: str | None
    text: str
    top: int
    places: Mapping[str, Location]
    declared_at: Location

    def check(self, rows: Rows) -> None:
        """Raises ProjectError at a column that the rows do not have."""
        known = [column.name for column in rows.schema]
        for key, names in (("x", (self.x,)), ("y", self.y), ("color", (self.color,))):
            for name in names:
                if name is not None and name not in known:
                    hint = nearest(name, known) or f"known: {', '.join(known)}"
                    raise ProjectError(f"no column {name!r} to draw", location=self.places[key], hint=hint)


@dataclass(frozen=True)
class Report:
    """The declarations of `report.yml`."""

    title: str | None
    text: str
    charts: tuple[ChartRequest, ...]


def read_report(root: Path) -> Report | None:
    """Read the project's `report.yml`; None where there is none. Raises ProjectError with line and column."""
    path = root / FILE
    if not path.is_file():
        return None
    node = parse_yaml(read_text(path, root), FILE).mapping(FILE)
    REPORT.check(node)
    charts = node.get("charts")
    if charts is None:
        raise ProjectError(f"{FILE} has no charts", location=Location(FILE, 1, 1), hint="charts: [{table: …}]")
    requests = tuple(_chart_request(chart) for chart in charts.sequence("charts"))
    return Report(node.text_of("title"), node.text_of("text") or "", requests)


def _chart_request(node: YamlNode) -> ChartRequest:
    CHART.check(node)
    table, sql = node.text_of("table"), node.text_of("sql")
    if (table is None) == (sql is None):
        raise node.error("a chart has either table or sql", "e.g. {table: sales_by_day, kind: line, x: day, y: total}")
    return ChartRequest(
        query=sql or f"select * from {table}",
        table=table,
        kind=cast(ChartKind | None, CHART.value(node, "kind")),
        x=node.text_of("x"),
        y=node.texts_of("y"),
        color=node.text_of("color"),
        title=node.text_of("title"),
        text=node.text_of("text") or "",
        top=cast(int, CHART.value(node, "top")),
        places={key: child.location for key, child in node.items()},
        declared_at=node.location,
    )
