"""`sml clean`: remove files that earlier commands wrote. Owns the command."""

from __future__ import annotations

import click

from sqlmesh_like.app.loading.loaded import load_parsed
from sqlmesh_like.app.setup.clean import clean_targets
from sqlmesh_like.cli.context import make_output
from sqlmesh_like.cli.options import Flags, shared_options


@click.command("clean")
@shared_options
def command(flags: Flags) -> None:
    """Remove the folders of clean-targets (default: the target folder)."""
    output = make_output(flags)
    for name in clean_targets(load_parsed(flags)):
        output.line(f"Removed {name}")
    output.line("Finished cleaning")
