"""`sml init NAME`: a new project that runs as it is. Owns the command."""

from __future__ import annotations

import click

from sqlmesh_like.app.setup.new_project import make_project


@click.command("init")
@click.argument("name")
def command(name: str) -> None:
    """Make the folder NAME with a small project: a seed, a model, its tests and a profile."""
    make_project(name)
    click.echo(f"Made {name}. Next: cd {name} && sml build (-t test: on DuckDB, in seconds)")
