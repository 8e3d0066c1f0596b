"""`sml test`: run the selected tests. Owns the command; `run.tests` and `run.unit_tests` decide the outcomes."""

from __future__ import annotations

import click

from sqlmesh_like.app.invocation import ResourceTypes
from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.resource_types import resource_types
from sqlmesh_like.cli.run_service import run_selected


@click.command("test")
@click.option("--store-failures", is_flag=True, help="Keep the failing rows of each data test in a table.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    help="What unit tests run on (default: duckdb).",
)
@resource_types
@in_environment
@shared_options
def command(flags: Flags, store_failures: bool, engine: str, types: ResourceTypes) -> int:
    """Run data tests on the lake as it is, and unit tests on DuckDB; unit tests alone need no JVM and no lake.

    With --engine spark, all unit tests run on the target's Spark, including those that DuckDB is not trusted with.
    """
    return run_selected(flags, "test", store_failures=store_failures, units_on=engine, types=types)
