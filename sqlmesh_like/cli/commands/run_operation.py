"""`sml run-operation MACRO`: call one macro. Owns the command; `render.operations` renders it."""

from __future__ import annotations

import click

from sqlmesh_like.app.lakes.lake import clock
from sqlmesh_like.app.operations.hooks import run_operation
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.activity import show_phase
from sqlmesh_like.cli.printing.writer import echo
from sqlmesh_like.project.reading.values import parse_vars


@click.command("run-operation")
@click.argument("macro")
@click.option("--args", "arguments", default="{}", help="The macro's arguments as a YAML mapping.", metavar="YAML")
@shared_options
def command(flags: Flags, macro: str, arguments: str) -> int:
    """Call a macro, `name` or `package.name`; it may query and change the lake with run_query and statement."""
    loaded = open_project(flags, now=clock(None))
    show_phase(f"calling {macro}")
    said = run_operation(loaded, macro, parse_vars(arguments))
    if said:
        echo(said)
    make_output(flags).line(f"Done: {macro}")
    return 0
