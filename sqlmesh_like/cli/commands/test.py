"""`sml test`: run the selected tests. Owns the command; `run.tests` and `run.unit_tests` have the verdicts."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.running import run_selected


@click.command("test")
@click.option("--store-failures", is_flag=True, help="Keep the failing rows of each data test in a table.")
@shared_options
def command(flags: Flags, store_failures: bool) -> int:
    """Run data tests on the lake as it is, and unit tests on DuckDB; unit tests alone need no JVM and no lake."""
    return run_selected(flags, "test", store_failures=store_failures)
