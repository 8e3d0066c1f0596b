"""`sml report`: a page with charts of a lake's tables. Owns the command; `report` draws."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.app.lakes.read_session import read_session
from sqlmesh_like.app.operations.report_setup import report_charts, report_heading, tables_read
from sqlmesh_like.artifacts.files import write_text
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.report.chart import read_report
from sqlmesh_like.report.page import report_page

PAGE = "report.html"


@click.command("report")
@click.option("--output", "path", type=click.Path(path_type=Path, dir_okay=False), help="Another file to write.")
@shared_options
def command(flags: Flags, path: Path | None) -> int:
    """Write one HTML file with charts that needs nothing else: <target-path>/report.html.

    report.yml declares the charts; without it each table of a model that no other model reads gets the chart that
    fits its rows. A JVM starts only for what DuckDB cannot read.
    """
    loaded = load(flags)
    report = read_report(loaded.project.root)
    show_phase("reading the rows of charts")
    with read_session(loaded, lambda lake: tables_read(lake, report)) as lake:
        html = report_page(report_heading(lake, report), report_charts(lake, report))
    written = path or loaded.target_folder / PAGE
    write_text(written, html)
    make_output(flags).line(f"Wrote {written} ({len(html.encode()) / 1000:,.0f} kB)")
    return 0
