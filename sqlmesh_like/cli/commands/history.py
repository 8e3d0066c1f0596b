"""`sml history`: a table's commits, read from its timeline. Owns the command and its output. Starts no JVM."""

from __future__ import annotations

from dataclasses import asdict

import click

from sqlmesh_like.app.lakes.table_history import table_commits
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.printing.output import size
from sqlmesh_like.cli.printing.rows import as_table
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.names import Column, NodeId
from sqlmesh_like.run.ports import Rows

_COLUMNS = (
    *(Column(name, "string") for name in ("time", "instant", "kind", "strategy")),
    *(Column(name, "bigint") for name in ("inserts", "updates", "deletes", "rows", "files", "bytes")),
    *(Column(name, "string") for name in ("frontier", "columns", "savepoint")),
)


@click.command("history")
@click.argument("table", shell_complete=complete_names)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", help="Form of the list.")
@click.option("--limit", type=int, default=50, help="Newest commits to show (-1: all).")
@in_environment
@shared_options
def command(flags: Flags, table: str, output: str, limit: int) -> int:
    """Show a table's commits: time, instant, kind, rows, bytes, strategy, frontier, savepoint.

    A time or instant from this list can be given to `show --as-of`, `changes --since`, `rollback --to` and
    `savepoint create --at`.
    """
    name, commits = table_commits(open_project(flags), table, limit)
    entries = [asdict(commit) for commit in commits]
    if output == "json":
        echo_json(entries, indent=2)
    else:
        has_savepoint = any(commit.savepoint for commit in commits)
        columns = tuple(c for c in _COLUMNS if has_savepoint or c.name != "savepoint")
        rows = tuple(tuple(_format_cell(c.name, entry[c.name]) for c in columns) for entry in entries)
        echo(as_table(Rows(columns, rows), title=str(name)))
    return 0


def _format_cell(name: str, value: object) -> object:
    if name == "bytes":
        return size(int(str(value)))
    if name == "instant":
        return str(value).split("_")[0]
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    if isinstance(value, dict):
        return "\n".join(f"{NodeId.parse(name).name} {instant.split('_')[0]}" for name, instant in value.items())
    return value
