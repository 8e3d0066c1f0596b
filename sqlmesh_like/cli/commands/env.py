"""`sml env list` and `drop`. Owns the commands and their output."""

from __future__ import annotations

from dataclasses import asdict

import click

from sqlmesh_like.app.operations.environments.environment_list import drop_environment, list_environments
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows

_LISTED = (
    Column("name", "string"),
    Column("created_at", "string"),
    Column("tables", "bigint"),
    Column("state", "string"),
)


@click.group("env")
def command() -> None:
    """See and drop the environments that `sml run -e NAME` makes."""


@command.command("list")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="Form of the output.")
@shared_options
def list_(flags: Flags, output: str) -> int:
    """List the project's environments, and where production has moved on since. Starts no JVM."""
    listed = list_environments(open_project(flags))
    if output == "json":
        echo_json(
            [
                {
                    "name": each.environment.name,
                    "created_at": each.environment.created_at,
                    "tables": {name: asdict(entry) for name, entry in each.environment.tables.items()},
                    "moved": [asdict(table) for table in each.moved],
                    "promotion_interrupted": bool(each.environment.promotion),
                }
                for each in listed
            ],
            indent=2,
        )
        return 0
    rows = []
    for each in listed:
        state = "promotion interrupted" if each.environment.promotion else ""
        if each.moved and not state:
            state = f"production has moved on in {', '.join(table.table for table in each.moved)}"
        rows.append((each.environment.name, each.environment.created_at, len(each.environment.tables), state))
    echo(as_table(Rows(_LISTED, tuple(rows))) if rows else "There are no environments")
    return 0


@command.command("drop")
@click.argument("name")
@shared_options
def drop(flags: Flags, name: str) -> int:
    """Remove an environment with its tables; production keeps its own. Starts no JVM."""
    loaded, output = open_project(flags), make_output(flags)
    dropped = drop_environment(loaded, name)
    count = len(dropped.tables)
    output.line(f"dropped the environment {name} and its {count} table{'s' * (count != 1)}")
    return 0
