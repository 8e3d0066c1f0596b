"""`sml changes`: rows of a table that changed between two commits. Owns the command; change feeds read them."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.table_rows import changed_rows
from sqlmesh_like.cli.commands.show import print_rows
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, at_release, in_environment, shared_options


@click.command("changes")
@click.argument("table", shell_complete=complete_names)
@click.option("--since", required=True, metavar="WHEN", help="A commit of `sml history`, or an ISO 8601 time (UTC).")
@click.option("--until", metavar="WHEN", help="As --since; default: the newest commit.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to show (-1: all).")
@at_release
@in_environment
@shared_options
def command(flags: Flags, table: str, since: str, until: str | None, output: str, limit: int, at: str | None) -> int:
    """Print what changed in a table since a commit or time: inserts, deletes, and updates before and after."""
    rows = changed_rows(open_project(flags), table, since, until or None, limit, at)
    print_rows(rows, output, limit, flags)
    return 0
