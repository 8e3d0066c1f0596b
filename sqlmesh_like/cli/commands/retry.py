"""`sml retry`: run nodes again that failed or were skipped. Owns the command; `last_call` reads the earlier call."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlmesh_like.app.loading.last_call import last_call
from sqlmesh_like.app.operations.run_nodes import COMMAND_TYPES
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_service import run_selected


@click.command("retry")
@shared_options
def command(flags: Flags) -> int:
    """Run again what failed or was skipped in the last seed, run, test or build, with the flags of that call.

    After a build, data tests of these nodes are run as they are now, changed and new ones included. The call is read
    from run_results.json in the target folder, or in --state; flags given here override its flags.
    """
    last = last_call(flags, COMMAND_TYPES)
    if not last.unfinished:
        make_output(flags).line(f"Nothing to retry: nothing failed in the last `sml {last.command}`")
        return 0
    again = last.merge_flags(flags)
    present = last.present(open_project(replace(again, quiet=True), broken=True))
    for unique_id in sorted(last.unfinished.difference(present)):
        make_output(again).line(f"warning: {unique_id} failed in the last call and is no longer there", "warn")
    return run_selected(
        again,
        last.command,
        last.now,
        present,
        store_failures=last.store_failures,
        units_on=last.units_on,
        slices=last.slices,
        backfill=last.backfill,
    )
