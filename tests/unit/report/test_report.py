"""Which chart is chosen, what may be declared, and that a page can do no harm."""

from __future__ import annotations

import re
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import clock, open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.app.operations.adhoc_query import adhoc_model
from sqlmesh_like.cli.app import main
from sqlmesh_like.names import Column
from sqlmesh_like.report.chart import Chart, read_report
from sqlmesh_like.report.chart_inference import infer_chart
from sqlmesh_like.report.date_columns import days_as_dates
from sqlmesh_like.report.drawing import draw_svg
from sqlmesh_like.report.text_summary import summarize
from sqlmesh_like.run.ports import Rows
from tests.unit.report.conftest import HOSTILE, make_project, report

ROOT = Path(__file__).resolve().parents[3]
DAYS = [date(2024, 1, day) for day in range(1, 6)]


def rows(columns: str, *values: tuple[object, ...]) -> Rows:
    """`columns`: names and types, `day date, total double`."""
    named = (each.split() for each in columns.split(", "))
    return Rows(tuple(Column(name, type_) for name, type_ in named), values)


CHOICES = {
    "a measure over time is a line": (
        rows("day date, orders int, total double", *((day, 1, 2.0) for day in DAYS)),
        Chart("line", "T", "", "day", ("total",)),
    ),
    "months that are texts are a time": (
        rows("month string, n bigint", *((f"20240{n}", n) for n in range(1, 6))),
        Chart("line", "T", "", "month", ("n",)),
    ),
    "a few times are bars, names that repeat in them colours": (
        rows("ym string, who string, n int", ("202401", "a", 1), ("202401", "b", 2), ("202402", "a", 3)),
        Chart("bar", "T", "", "ym", ("n",), "who"),
    ),
    "a name for each row is a bar": (
        rows("city_id int, city string, n int", (1, "Ulm", 1), (2, "Bonn", 2)),
        Chart("bar", "T", "", "city", ("n",)),
    ),
    "one row is numbers": (rows("n int, sum double", (1, 2.5)), Chart("number", "T", "", None, ("n", "sum"))),
    "rows that nothing tells apart are a table": (
        rows("city string, n int", ("Ulm", 1), ("Ulm", 2)),
        Chart("table", "T", "", None, ("city", "n")),
    ),
    "keys are no measures": (
        rows("buyerId int, who string, order_id int", (1, "a", 2), (2, "b", 2)),
        Chart("table", "T", "", None, ("buyerId", "who", "order_id")),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_chart_that_fits_is_chosen(name: str) -> None:
    given, wanted = CHOICES[name]
    assert infer_chart(given, "T") == wanted


def test_a_drawing_has_the_colours_of_the_page_and_tells_each_mark() -> None:
    given = rows("day date, total decimal(9,2)", *((day, Decimal(f"{day.day}000.5")) for day in DAYS))
    svg = draw_svg(Chart("line", "T", "", "day", ("total",)), given, 500, "c7")
    assert svg.startswith('<svg aria-hidden="true"') and "var(--c1)" in svg and not re.search(r'"#0[12]0[12]', svg)
    assert 'data-tip="day: 2024-01-03; total: 3,000.5"' in svg
    assert "aria-label" not in svg and "role=" not in svg
    assert set(re.findall(r'id="([^"]*)"', svg)) == {name for name in re.findall(r'id="([^"]*)"', svg) if "c7-" in name}


def test_bars_are_the_largest_and_times_are_utc() -> None:
    given = rows("city string, n int", *((f"city {n}", n) for n in range(30)), ("none", None))
    svg = draw_svg(Chart("bar", "T", "", "city", ("n",), top=3), given, 500, "c")
    assert re.findall(r'data-tip="city: (city \d+); n: (\d+)"', svg) == [
        ("city 29", "29"),
        ("city 28", "28"),
        ("city 27", "27"),
    ]
    at = rows("hour timestamp, n int", *((datetime(2024, 1, 1, hour), hour) for hour in range(24)))
    svg = draw_svg(Chart("bar", "T", "", "hour", ("n",)), at, 500, "c")
    assert "hour: 2024-01-01 03:00:00; n: 3" in svg and svg.count("data-tip") == 24, "times are never cut"


def labels(svg: str) -> list[str]:
    """What stands at the axes."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


@pytest.mark.parametrize("values", [(1, 3), (Decimal("1.00"), Decimal("3.00")), (1.0, 3.0), (0, 1)])
def test_between_whole_numbers_an_axis_has_no_label(values: tuple[float, float]) -> None:
    given = rows("city string, n decimal(9,2)", ("Ulm", values[0]), ("Bonn", values[1]))
    said = labels(draw_svg(Chart("bar", "T", "", "city", ("n",)), given, 500, "c"))
    assert [each for each in said if not each.isalpha()] == [str(each) for each in range(int(values[1]) + 1)]


def test_between_other_numbers_it_has() -> None:
    given = rows("city string, n double", ("Ulm", 0.5), ("Bonn", 2.0))
    assert "0.5" in labels(draw_svg(Chart("bar", "T", "", "city", ("n",)), given, 500, "c"))


def test_zero_has_no_unit() -> None:
    given = rows("city string, n int", ("Ulm", 15_000), ("Bonn", 2))
    said = labels(draw_svg(Chart("bar", "T", "", "city", ("n",)), given, 500, "c"))
    assert "0" in said and "0k" not in said and "10k" in said


@pytest.mark.parametrize("days", [2, 3, 5, 20, 44])
def test_an_axis_of_days_has_no_hours_and_each_day_once(days: int) -> None:
    given = rows("day date, n int", *((date(2024, 1, 1) + timedelta(each), each) for each in range(days)))
    said = labels(draw_svg(Chart("line", "T", "", "day", ("n",)), given, 560, "c"))
    dates = [each for each in said if re.fullmatch(r"\d{4}-\d{2}-\d{2}", each)]
    assert dates and len(set(dates)) == len(dates)
    assert not [each for each in said if re.search("AM|PM|:", each)]


def test_an_axis_of_months_has_nothing_between_them() -> None:
    given = rows("year_month string, n int", *((f"2024{month:02}", month) for month in range(1, 6)))
    said = labels(draw_svg(Chart("line", "T", "", "year_month", ("n",)), given, 560, "c"))
    assert [each for each in said if each.endswith("2024")] == [
        "Jan 2024", "Feb 2024", "Mar 2024", "Apr 2024", "May 2024",
    ]  # fmt: skip


def test_timestamps_that_are_all_midnights_are_days() -> None:
    days = rows("at timestamp, n int", (datetime(2024, 1, 1), 1), (datetime(2024, 1, 2, tzinfo=UTC), 2), (None, 3))
    assert days_as_dates(days) == rows("at date, n int", (date(2024, 1, 1), 1), (date(2024, 1, 2), 2), (None, 3))
    moments = rows("at timestamp, n int", (datetime(2024, 1, 1), 1), (datetime(2024, 1, 2, 12), 2))
    assert days_as_dates(moments) == moments


def test_a_chart_is_told_in_words() -> None:
    given = rows("city string, n int", ("Ulm", 1200), ("Bonn", 3), ("Rom", None))
    said = summarize(Chart("bar", "Sales", "", "city", ("n",)), given)
    assert said == "N by city, 3 values. Largest 1,200 (Ulm), smallest 3 (Bonn)."
    assert (
        summarize(Chart("bar", "Sales", "", "city", ("n",)), Rows(given.schema, ())) == "Sales: there are no rows yet."
    )


def test_the_page_asks_for_nothing_and_runs_nothing_of_the_rows(report_page: Path) -> None:
    html = report_page.read_text()
    assert len(re.findall("<script>", html)) == 1 and HOSTILE not in html
    assert "default-src 'none'" in unescape(html) and "unsafe" not in html
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)
    assert len(html) < 250_000


DECLARED = """
title: Corner <shop>
text: Of all that is sold.
charts:
  - {table: sales_by_day, kind: area, x: day, y: total, title: By day}
  - {sql: "select city, amount from dws.sales_by_city where amount > 4000", top: 2}
  - {table: sales_total, kind: table}
"""


def test_declared_charts_stand_in_their_order(tmp_path: Path) -> None:
    root = make_project(tmp_path / "p")
    (root / "report.yml").write_text(DECLARED)
    html = report(root, "--output", str(root / "other.html"))
    assert not html.exists()
    text = (root / "other.html").read_text()
    assert re.findall(r"<h2[^>]*>([^<]*)<", text) == ["By day", "A question", "Sales total"]
    assert "<h1>Corner &lt;shop&gt;</h1>" in text and "Of all that is sold." in text
    assert set(re.findall(r'data-tip="city: (\w+)', text)) == {"Springfield", "Lake"}
    (folded,) = re.findall(r'<details class="source"><summary>SQL</summary><pre[^>]*><code>([^<]*)</code>', text)
    assert unescape(folded) == "select city, amount from dws.sales_by_city where amount > 4000"
    assert "<code>sales_by_day</code>" in text, "a table is named"


@pytest.mark.parametrize(
    ("chart", "said"),
    [
        ("{table: sales_by_dya}", "report.yml:2:13: no table sales_by_dya in this project\n  did you mean"),
        ("{table: sales_by_day, y: totl}", "report.yml:2:30: no column 'totl' to draw\n  did you mean 'total'?"),
        ("{sql: select dya from dws.sales_by_day}", "report.yml:2:11: unknown column 'dya'"),
        ("{table: sales_by_day, kind: pie}", "report.yml:2:27: kind is 'pie'; it must be one of line, area"),
        (
            "{table: sales_by_day, colour: x}",
            "report.yml:2:27: unknown key 'colour' in a chart\n  did you mean 'color'?",
        ),
        (
            '{sql: "select 1 as n, day from sales_by_day", x: n, y: n, kind: bar}',
            "report.yml:2:54: several rows have the same n",
        ),
        ("{kind: line}", "a chart has either table or sql"),
    ],
)
def test_a_wrong_declaration_is_told_at_its_place(
    chart: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_project(tmp_path / "p")
    (root / "report.yml").write_text(f"charts:\n  - {chart}\n")
    report(root, code=2)
    assert said in capsys.readouterr().err


def test_without_tables_or_the_library_it_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_project(tmp_path / "p")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    report(root, code=2)
    assert "pip install 'sqlmesh_like[report]'" in capsys.readouterr().err
    (root / "w/dws").rename(root / "w/gone")
    report(root, code=1)
    assert "there is no table to draw" in capsys.readouterr().err


@pytest.mark.parametrize("demo", ["estate", "retail"])
def test_the_charts_of_a_demo_name_its_tables_and_columns(demo: str) -> None:
    root = ROOT / "demo" / demo
    lake = open_lake(load(Invocation(project_dir=root)))
    declared, planner = read_report(root), lake.planner(clock(None))
    assert declared is not None and len(declared.charts) >= 4
    for wanted in declared.charts:
        schema = planner.compile(adhoc_model(lake, wanted.query), {}).facts.schema
        assert schema is None or {*wanted.y, wanted.x} - {None} <= {column.name for column in schema}


def test_the_report_of_the_first_demo_is_drawn_over_fixtures(tmp_path: Path) -> None:
    words = ["report", "-t", "test", "--project-dir", str(ROOT), "--output", str(tmp_path / "r.html")]
    assert main(words) == 0
    text = (tmp_path / "r.html").read_text()
    assert text.count('class="plot"') == 5 and 'class="numbers"' in text
