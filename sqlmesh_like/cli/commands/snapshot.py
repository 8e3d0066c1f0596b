"""`sml snapshot`: record the versions of rows. Owns the command; `delta.snapshot` owns the program."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("snapshot")
@click.option("--now", help="Clock of the run, ISO 8601 (default: the machine's).", metavar="TIME")
@shared_options
def command(flags: Flags, now: str | None) -> int:
    """Add new row versions to the selected snapshots and close the versions that they replace, in one commit each."""
    return run_selected(flags, "snapshot", now)
