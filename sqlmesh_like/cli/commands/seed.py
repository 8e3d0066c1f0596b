"""`sml seed`: load the selected CSV files as tables. Owns the command; `run.seeds` reads, the engine writes."""

from __future__ import annotations

import click

from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("seed")
@in_environment
@shared_options
def command(flags: Flags) -> int:
    """Load seeds whose CSV file changed, each in one commit; models that read them process only changed rows."""
    return run_selected(flags, "seed")
