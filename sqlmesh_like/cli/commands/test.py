"""`sml test`: run the selected data tests. Owns the command; `run.tests` counts failures."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.running import run_selected


@click.command("test")
@shared_options
def command(flags: Flags) -> int:
    """Run data tests on the lake as it is; the rows of a test's SELECT are its failures."""
    return run_selected(flags, "test")
