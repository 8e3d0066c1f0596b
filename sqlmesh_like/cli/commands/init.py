"""`sml init NAME`: a new project that runs as it is. Owns the command."""

from __future__ import annotations

import os
import sys

import click

from sqlmesh_like.app.setup.database_project import database_at, files_of
from sqlmesh_like.app.setup.new_project import EXAMPLE_PROJECTS, check_name, make_project, write_project
from sqlmesh_like.cdc.sources.database.server import PASSWORD_VARIABLE
from sqlmesh_like.cli.printing.writer import echo


@click.command("init")
@click.argument("name")
@click.option(
    "--example",
    type=click.Choice(list(EXAMPLE_PROJECTS)),
    default="minimal",
    help="minimal: a seed and a model. cdc: Debezium's events of two tables, two models, a unit test.",
)
@click.option("--from", "url", metavar="URL", help="A database instead: mysql://user@host/database, or postgresql://….")
def command(name: str, example: str, url: str | None) -> None:
    """Create the folder NAME with a small project, its tests, and targets with and without Java. Asks no questions.

    With --from, the project is for the tables of a database: a source that reads it, and a model for each table. Its
    password is asked for on a terminal, unless SML_DATABASE_PASSWORD has it, and is stored nowhere.
    """
    if url is not None:
        check_name(name)
        settings = database_at(url, None)
        if settings.password is None and PASSWORD_VARIABLE not in os.environ and sys.stdin and sys.stdin.isatty():
            settings = database_at(url, click.prompt(f"Password of {settings.user}", "", hide_input=True, err=True))
        write_project(name, files_of(name, settings))
        echo(f"Made {name}. Next: cd {name} && sml ingest && sml build")
        return
    make_project(name, example)
    echo(f"Made {name}. Next: cd {name} && {EXAMPLE_PROJECTS[example]}")
