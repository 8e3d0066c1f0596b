"""`sml snapshot`: record the versions of rows. Owns the command; `delta.snapshot` owns the program."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("snapshot")
@click.option("--now", help="Clock of the run, ISO 8601 (default: the machine's).", metavar="TIME")
@shared_options
def command(flags: Flags, now: str | None) -> int:
    """Write the new versions of rows of the selected snapshots, each in one commit, and end those that they replace."""
    return run_selected(flags, "snapshot", now)
