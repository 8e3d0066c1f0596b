"""`sml savepoint create`, `list` and `delete`: commits whose files are kept. Owns the commands and their output."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.recovery.savepoints import create_savepoint, delete_savepoint, list_savepoints
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows

_COLUMNS = (
    *(Column(name, "string") for name in ("table", "instant", "created_at", "user", "comment")),
    Column("files", "bigint"),
)


@click.group("savepoint")
def command() -> None:
    """Keep a table's commit, with its files, to return to."""


@command.command("create")
@click.argument("table", shell_complete=complete_names)
@click.option("--at", "when", metavar="WHEN", help="A commit of `sml history`, or an ISO 8601 time (default: newest).")
@click.option("--comment", default="", help="Text that `sml savepoint list` shows.")
@shared_options
def create(flags: Flags, table: str, when: str | None, comment: str) -> int:
    """Create a savepoint of a table's commit. Starts no JVM.

    Neither `sml maintain` nor Hudi's cleaner removes its files until the savepoint is deleted, and all commits since
    stay on the timeline. `sml rollback TABLE --to INSTANT` returns to it. It is a savepoint of Hudi's, which Spark's
    procedures know too. Tables on this machine only.
    """
    loaded, output = open_project(flags), make_output(flags)
    name, savepoint = create_savepoint(loaded, table, when, comment)
    count = sum(map(len, savepoint.files.values()))
    output.line(f"{name} has a savepoint of {savepoint.instant}: {count} file{'s' * (count != 1)} kept")
    return 0


@command.command("list")
@click.argument("table", required=False, shell_complete=complete_names)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="Form of the list.")
@shared_options
def list_(flags: Flags, table: str | None, output: str) -> int:
    """List the savepoints of a table, or of all tables. Starts no JVM."""
    rows = tuple(
        (
            str(name), each.instant, each.created_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
            each.user, each.comment, sum(map(len, each.files.values())),
        )
        for name, each in list_savepoints(open_project(flags), table)
    )  # fmt: skip
    if output == "json":
        names = [column.name for column in _COLUMNS]
        echo_json([dict(zip(names, row, strict=True)) for row in rows], indent=2)
    elif rows:
        echo(as_table(Rows(_COLUMNS, rows)))
    else:
        echo("There are no savepoints")
    return 0


@command.command("delete")
@click.argument("table", shell_complete=complete_names)
@click.argument("instant")
@shared_options
def delete(flags: Flags, table: str, instant: str) -> int:
    """Delete a savepoint, so that the next cleaning may remove its files. Starts no JVM."""
    loaded, output = open_project(flags), make_output(flags)
    output.line(f"{delete_savepoint(loaded, table, instant)} has no savepoint of {instant} any more")
    return 0
