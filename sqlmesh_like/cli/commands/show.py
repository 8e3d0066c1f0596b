"""`sml show`: rows of a table or of any SELECT. Owns the command; copy-on-write tables, and tables of a `duckdb`
target, are read without a JVM."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import click

from sqlmesh_like.app.operations.table_rows import inline_rows, table_rows
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, at_release, in_environment, shared_options
from sqlmesh_like.cli.printing.rows import as_csv, as_json, as_table
from sqlmesh_like.cli.printing.writer import echo, echo_rows
from sqlmesh_like.errors import UsageError
from sqlmesh_like.run.ports import Rows


@click.command("show")
@click.argument("model", required=False, shell_complete=complete_names)
@click.option("--inline", metavar="SQL", help="Any SELECT, with ref() and source(), instead of a model.")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to show (-1: all).")
@click.option("--as-of", metavar="WHEN", help="Rows as of a commit of `sml history` or an ISO 8601 time (UTC).")
@at_release
@in_environment
@shared_options
def command(
    flags: Flags, model: str | None, inline: str | None, output: str, limit: int, as_of: str | None, at: str | None
) -> int:
    """Print the rows of a model, a seed or a source table, without hidden columns."""
    name = model or (flags.select[0] if len(flags.select) == 1 else None)
    if (name is None) == (inline is None):
        raise UsageError("name one model, or give --inline SQL", hint="e.g. sml show user_agg")
    loaded = open_project(replace(flags, select=()))
    if inline is not None:
        rows = inline_rows(loaded, inline, limit, as_of, at)
    else:
        rows = table_rows(loaded, name or "", limit, as_of, at)
    print_rows(rows, output, limit, flags)
    return 0


def print_rows(rows: Rows, output: str, limit: int, flags: Flags) -> None:
    """Print rows in a form of `--output`, and for a table a note where there may be more rows."""
    forms = {"json": as_json, "csv": as_csv, "table": _table}
    text = forms[output](rows).rstrip("\n")
    if output == "csv":
        echo_rows(text)
    else:
        echo(text)
    if output == "table" and len(rows.rows) == limit:
        make_output(flags, sys.stderr).line(f"the first {limit} rows; --limit -1 shows all")


def _table(rows: Rows) -> str:
    """Return a table as wide as the terminal; in a pipe or file it is so wide that no cell is folded."""
    return as_table(rows, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else 100_000)
