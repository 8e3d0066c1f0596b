"""`sml build`: seeds, models and their tests together. Owns the command; `run.schedule` owns the order."""

from __future__ import annotations

import click

from sqlmesh_like.app.invocation import ResourceTypes
from sqlmesh_like.cli.options import Flags, in_environment, in_parts, shared_options
from sqlmesh_like.cli.resource_types import resource_types
from sqlmesh_like.cli.run_service import run_selected


@click.command("build")
@click.option("--now", help="Clock of the run, ISO 8601 (default: the machine's).", metavar="TIME")
@click.option("--store-failures", is_flag=True, help="Keep the failing rows of each data test in a table.")
@resource_types
@in_parts
@in_environment
@shared_options
def command(
    flags: Flags,
    now: str | None,
    store_failures: bool,
    types: ResourceTypes,
    slices: int | None,
    backfill: str | None,
) -> int:
    """Load seeds, test and run models, in the order of the graph. Nodes downstream of a failed test are skipped."""
    return run_selected(
        flags, "build", now, store_failures=store_failures, types=types, slices=slices, backfill=backfill
    )
