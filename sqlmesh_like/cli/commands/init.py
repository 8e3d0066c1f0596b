"""`sml init NAME`: a new project that runs as it is. Owns the command."""

from __future__ import annotations

import click

from sqlmesh_like.app.setup.new_project import EXAMPLE_PROJECTS, make_project
from sqlmesh_like.cli.printing.writer import echo


@click.command("init")
@click.argument("name")
@click.option(
    "--example",
    type=click.Choice(list(EXAMPLE_PROJECTS)),
    default="minimal",
    help="minimal: a seed and a model. cdc: Debezium's events of two tables, two models, a unit test.",
)
def command(name: str, example: str) -> None:
    """Create the folder NAME with a small project, its tests, and targets with and without Java. Asks no questions."""
    make_project(name, example)
    echo(f"Made {name}. Next: cd {name} && {EXAMPLE_PROJECTS[example]}")
