"""`sml changes`: rows of a table that changed between two commits. Owns the command; the change feed reads them."""

from __future__ import annotations

import click

from sqlmesh_like.app.lakes.lake import built_table, open_lake
from sqlmesh_like.cli.commands.show import print_rows
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import UsageError


@click.command("changes")
@click.argument("table", shell_complete=complete_names)
@click.option("--since", required=True, metavar="WHEN", help="A commit of `sml history`, or an ISO 8601 time (UTC).")
@click.option("--until", metavar="WHEN", help="As --since; default: the newest commit.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to show (-1: all).")
@shared_options
def command(flags: Flags, table: str, since: str, until: str | None, output: str, limit: int) -> int:
    """Print what changed in a table since a commit or time: inserts, deletes, and updates before and after."""
    lake = open_lake(load(flags))
    _, state = built_table(lake, table)
    from sqlmesh_like.hudi.time_travel import state_at

    start, end = state_at(state, since), state_at(state, until) if until else state
    assert start.frontier is not None and end.frontier is not None
    if start.frontier > end.frontier:
        raise UsageError(f"--until {until} lies before --since {since}", hint="exchange the two")
    try:
        rows = lake.engine.changes(end, start.frontier, limit)
    finally:
        lake.engine.stop()
    print_rows(rows, output, limit, flags)
    return 0
