"""`sml report`: a page with charts of a lake's tables. Owns the command."""

from __future__ import annotations

from pathlib import Path

import click

from sqlmesh_like.app.operations.report_setup import write_report
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, at_release, shared_options


@click.command("report")
@click.option("--output", "path", type=click.Path(path_type=Path, dir_okay=False), help="File to write instead.")
@at_release
@shared_options
def command(flags: Flags, path: Path | None, at: str | None) -> int:
    """Write charts into one self-contained HTML file: <target-path>/report.html.

    report.yml declares the charts; without it, each model that no other model reads gets the chart that fits its
    rows. A JVM starts only for tables that DuckDB cannot read.
    """
    written, size = write_report(open_project(flags), path, at)
    make_output(flags).line(f"Wrote {written} ({size / 1000:,.0f} kB)")
    return 0
