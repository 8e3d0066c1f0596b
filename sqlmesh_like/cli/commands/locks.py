"""`sml locks`: which calls hold which locks. Owns the command and its output."""

from __future__ import annotations

import click

from sqlmesh_like.app.lakes.lock_registry import Holder
from sqlmesh_like.app.operations.lock_list import list_holders
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.names import Column
from sqlmesh_like.run.ports import Rows

_NAMES = ("command", "process", "host", "since", "lock", "mode")


@click.command("locks")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="Form of the list.")
@shared_options
def command(flags: Flags, output: str) -> int:
    """List which calls hold which locks of the warehouse, and since when. Starts no JVM.

    A lock is of a table, of a source's ingestion, of a destination, or (`~runs`, `~ingestions`) of all of a kind. On an
    object store the calls of all machines are listed, until some time after they ended (`store: {lease_seconds: …}`).
    """
    rows = tuple(row for holder in list_holders(open_project(flags)) for row in _rows(holder))
    if output == "json":
        echo_json([dict(zip(_NAMES, row, strict=True)) for row in rows], indent=2)
    elif rows:
        echo(as_table(Rows(tuple(Column(name, "string") for name in _NAMES), rows)))
    else:
        echo("Nobody holds a lock")
    return 0


def _rows(holder: Holder) -> list[tuple[str, ...]]:
    command = (
        f"{holder.command} (killed; a process that it had started still runs)" if holder.is_ending else holder.command
    )
    who = (command, str(holder.process), holder.host, holder.since)
    return [(*who, name, mode) for name, mode in sorted(holder.locks.items())]
