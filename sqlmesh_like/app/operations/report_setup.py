"""The report: charts of `report.yml`, or of each table that no model reads. Owns reading their rows, and the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from sqlmesh_like.app.lakes.lake import Lake
from sqlmesh_like.app.lakes.read_session import read_session
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.adhoc_query import adhoc_model, run_query
from sqlmesh_like.artifacts.files import REPORT, write_text
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.artifacts.run_history import FAILED, HISTORY, target_history
from sqlmesh_like.artifacts.state import read_artifact
from sqlmesh_like.errors import NodeError, ProjectError, SqlError
from sqlmesh_like.hudi.table_facts import table_facts
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.report.chart import Chart, ChartKind, ChartRequest, Report, read_report
from sqlmesh_like.report.chart_inference import complete_chart, infer_chart, repeated_fields
from sqlmesh_like.report.date_columns import days_as_dates
from sqlmesh_like.report.page import DrawnChart, ReportHeading, report_page
from sqlmesh_like.report.text_summary import title_text
from sqlmesh_like.run.ports import Rows

_ORDER: tuple[ChartKind, ...] = ("number", "line", "area", "bar", "point", "table")

MOST_CHART_ROWS = 5_000
"""Most rows that a chart shows; it says so where a table has more."""


def write_report(loaded: Loaded, path: Path | None = None, at: str | None = None) -> tuple[Path, int]:
    """Write the page, by default to <target-path>/report.html, and return its path and size in bytes.

    `at`: the release that is read, see `reading_lake`.

    Raises ProjectError at a declaration that cannot be drawn, NodeError where there is no table to draw.
    """
    report = read_report(loaded.project.root)
    loaded.reporter.phase("reading the rows of charts")
    with read_session(loaded, lambda lake: tables_read(lake, report), at) as lake:
        html = report_page(report_heading(lake, report), report_charts(lake, report))
    written = path or loaded.target_folder / REPORT
    write_text(written, html)
    return written, len(html.encode())


def report_charts(lake: Lake, report: Report | None) -> list[DrawnChart]:
    """Return the charts with their rows. Raises ProjectError at a declaration that cannot be drawn, NodeError."""
    if report is not None:
        return list(_declared_charts(lake, report))
    return sorted(_inferred_charts(lake), key=lambda drawn: (not drawn.rows.rows, _ORDER.index(drawn.chart.kind)))


def tables_read(lake: Lake, report: Report | None) -> list[str]:
    """Return ids of the tables and views that the charts read. Raises ProjectError where one is unknown."""
    if report is None:
        return [model.unique_id for model in _leaves(lake)]
    return sorted({ref.unique_id for wanted in report.charts for ref in _chart_query(lake, wanted).inputs})


def report_heading(lake: Lake, report: Report | None) -> ReportHeading:
    """Return title, text and, for a lake, number of tables, their rows and the time of the last change; tests that
    failed."""
    is_lake = lake.loaded.target.type == "spark"
    models = [m for m in lake.loaded.rendered.models if m.unique_id in lake.catalog.places and is_lake]
    facts = [table_facts(lake.catalog, model.unique_id, 1) for model in models]
    times = [each.commits[-1].time for each in facts if each.commits]
    shown: list[tuple[str, str]] = []
    if times:
        shown += [("Tables", str(len(times))), ("Rows in them", f"{sum(each.volume.rows for each in facts):,}")]
        shown.append(("Last change", f"{max(times)[:19].replace('T', ' ')} UTC"))
    # The names of data tests that failed when they were last run for this target.
    loaded = lake.loaded
    folder = loaded.target_folder
    calls = read_artifact(folder / HISTORY), read_artifact(folder / "run_results.json")
    problems = target_history(calls[0], loaded.target.name, calls[1]).problems
    tests = [test for test in loaded.rendered.tests if test.unique_id in problems]
    if failed := [test.name for test in tests if mapping_of(problems[test.unique_id]).get("status") in FAILED]:
        shown.append(("Failed tests", ", ".join(failed)))
    title = report.title if report is not None and report.title else title_text(lake.loaded.project.name)
    return ReportHeading(title, report.text if report is not None else "", tuple(shown))


def _declared_charts(lake: Lake, report: Report) -> Iterator[DrawnChart]:
    for wanted in report.charts:
        with _at(wanted):
            rows = days_as_dates(run_query(lake, _chart_query(lake, wanted), MOST_CHART_ROWS + 1))
        wanted.check(rows)
        names = {str(model.table): model for model in lake.loaded.rendered.models}
        names |= {model.table.identifier: model for model in lake.loaded.rendered.models}
        model = names.get(wanted.table or "")
        title = title_text(wanted.table.rpartition(".")[2]) if wanted.table else "A question"
        chart = complete_chart(wanted, rows, title, _keys(model))
        if shared := repeated_fields(chart, rows):
            hint = "add color, or take sql that groups by them"
            message = f"several rows have the same {' and '.join(shared)}: a mark cannot show them all"
            raise ProjectError(message, location=wanted.places.get("x", wanted.declared_at), hint=hint)
        yield _chart_with_rows(chart, rows, wanted.table, None if wanted.table else dedent(wanted.query).strip())


def _chart_query(lake: Lake, wanted: ChartRequest) -> RenderedModel:
    with _at(wanted):
        return adhoc_model(lake, wanted.query)


@contextmanager
def _at(wanted: ChartRequest) -> Iterator[None]:
    """Report errors of a query at its declaration."""
    try:
        yield
    except SqlError as error:
        place = wanted.places.get("sql") or wanted.places.get("table") or wanted.declared_at
        raise ProjectError(error.message, location=place, hint=error.hint) from None


def _inferred_charts(lake: Lake) -> Iterator[DrawnChart]:
    """Yield a chart of each model's table that no other model reads."""
    built = [model for model in _leaves(lake) if lake.catalog.state(model.unique_id).exists]
    if not built:
        raise NodeError("there is no table to draw", hint="run `sml build` first, or declare charts in report.yml")
    for model in built:
        query = adhoc_model(lake, f"select * from {model.table.sql()}")
        rows = days_as_dates(run_query(lake, query, MOST_CHART_ROWS + 1))
        text = model.description.strip().partition("\n\n")[0]
        chart = infer_chart(_limit_rows(rows), title_text(model.table.identifier), " ".join(text.split()), _keys(model))
        yield _chart_with_rows(chart, rows, str(model.table))


def _leaves(lake: Lake) -> list[RenderedModel]:
    models = lake.loaded.rendered.models
    read = {ref.unique_id for model in models for ref in model.inputs}
    return [model for model in models if model.unique_id in lake.catalog.places and model.unique_id not in read]


def _chart_with_rows(chart: Chart, rows: Rows, table: str | None, query: str | None = None) -> DrawnChart:
    return DrawnChart(chart, _limit_rows(rows), table, query, len(rows.rows) > MOST_CHART_ROWS)


def _limit_rows(rows: Rows) -> Rows:
    return Rows(rows.schema, rows.rows[:MOST_CHART_ROWS])


def _keys(model: RenderedModel | None) -> tuple[str, ...]:
    return (*model.config.unique_key, *model.config.partition_by) if model is not None else ()
