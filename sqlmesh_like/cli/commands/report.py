"""`sml report`: a page with charts of a lake's tables. Owns the command; `report` draws."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.artifacts.files import write_text
from sqlmesh_like.cli.commands.show import built
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.lake import clock, open_lake
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.reporting import charts_of, heading_of, read_by
from sqlmesh_like.report.chart import read_report
from sqlmesh_like.report.page import page

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
    if loaded.target.type == "spark":
        lake = open_lake(loaded)
    else:
        from sqlmesh_like.cli.duck_lake import open_duck_lake

        lake = built(loaded, read_by(open_duck_lake(loaded, [], clock(None)), report))
    try:
        html = page(heading_of(lake, report), charts_of(lake, report))
    finally:
        lake.engine.stop()
    written = path or loaded.target_folder / PAGE
    write_text(written, html)
    make_output(flags).line(f"Wrote {written} ({len(html.encode()) / 1000:,.0f} kB)")
    return 0
