"""`sml unlock`: ends locks on an object store that their call does not end. Owns the command and its output."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.lock_list import end_locks
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options


@click.command("unlock")
@click.argument("table", shell_complete=complete_names)
@shared_options
def command(flags: Flags, table: str) -> int:
    """End the locks of the calls that hold a table on an object store. Starts no JVM.

    For a call that is gone, or hangs, on a machine that cannot be reached: its locks end by themselves after
    `store: {lease_seconds: …}`. If it still lives, all of its locks are ended, and it is refused at its next commit.
    The table's own lock, which other writers of Hudi take too, is ended whoever has it. On this machine locks end with
    their process, and not before.
    """
    loaded, output = open_project(flags), make_output(flags)
    ended = end_locks(loaded, table)
    for holder in ended.holders:
        who = f"process {holder.process} on {holder.host}, since {holder.since}"
        output.line(f"ended the locks of `sml {holder.command}`, {who}: it will commit nothing more")
    if ended.foreign is not None:
        output.line(f"ended the lock of {ended.table} that another writer held, owner {ended.foreign.owner}")
    return 0
