"""`sml run`: bring the selected models up to date. Owns the command; `run.executor` runs them."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, in_environment, in_parts, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("run")
@click.option("--now", help="Clock of the run, ISO 8601 (default: the machine's).", metavar="TIME")
@in_parts
@in_environment
@shared_options
def command(flags: Flags, now: str | None, slices: int | None, backfill: str | None) -> int:
    """Update the selected models with work that is proportional to the change."""
    return run_selected(flags, "run", now, slices=slices, backfill=backfill)
