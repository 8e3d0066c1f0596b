"""What a chart shows: columns, kind, words. Owns the values, and what `report.yml` may say of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.reading.files import read_text
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml
from sqlmesh_like.run.ports import Rows

ChartKind = Literal["line", "area", "bar", "point", "number", "table"]
FILE = "report.yml"
TOP = 15
"""Bars that a chart shows where nothing else is said: the largest."""
TIME_LIKE = re.compile(r"(^|_)(date|day|month|year|hour|time|week|quarter|at|ts)(_|$)", re.IGNORECASE)
"""Names of columns in which a text or number such as 202401 is a time."""
_KEYS = ("table", "sql", "kind", "x", "y", "color", "title", "text", "top")


@dataclass(frozen=True)
class Chart:
    """One chart of the rows of a query. `y` are the columns that are drawn; of a table all that are shown.

    `x` and `color` None: there is none. Bars are horizontal where `x` is a text and vertical where it is a time.
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
        """The columns that it needs, each once."""
        return tuple(dict.fromkeys(name for name in (self.x, self.color, *self.y) if name is not None))


@dataclass(frozen=True)
class ChartRequest:
    """A chart that a file declares: of a table by name or of a query. What is not said is chosen by the rows."""

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
    """What `report.yml` says."""

    title: str | None
    text: str
    charts: tuple[ChartRequest, ...]


def read_report(root: Path) -> Report | None:
    """The project's `report.yml`; None where there is none. Raises ProjectError with line and column."""
    path = root / FILE
    if not path.is_file():
        return None
    node = parse_yaml(read_text(path, root), FILE).mapping(FILE)
    node.expect_keys(FILE, ("title", "text", "charts"))
    charts = node.get("charts")
    if charts is None:
        raise ProjectError(f"{FILE} has no charts", location=Location(FILE, 1, 1), hint="charts: [{table: …}]")
    requests = tuple(_wanted(chart) for chart in charts.sequence("charts"))
    return Report(_text(node, "title"), _text(node, "text") or "", requests)


def _wanted(node: YamlNode) -> ChartRequest:
    node.mapping("a chart").expect_keys("a chart", _KEYS)
    table, sql = _text(node, "table"), _text(node, "sql")
    if (table is None) == (sql is None):
        raise node.error("a chart has either table or sql", "e.g. {table: sales_by_day, kind: line, x: day, y: total}")
    kind, y, top = node.get("kind"), node.get("y"), node.get("top")
    return ChartRequest(
        query=sql or f"select * from {table}",
        table=table,
        kind=None if kind is None else cast(ChartKind, kind.choice("kind", get_args(ChartKind))),
        x=_text(node, "x"),
        y=() if y is None else y.texts("y"),
        color=_text(node, "color"),
        title=_text(node, "title"),
        text=_text(node, "text") or "",
        top=TOP if top is None else top.integer("top"),
        places={key: child.location for key, child in node.items()},
        declared_at=node.location,
    )


def _text(node: YamlNode, key: str) -> str | None:
    child = node.get(key)
    return None if child is None else child.text(key)
