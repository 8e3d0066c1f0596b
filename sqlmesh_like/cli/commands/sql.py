"""`sml sql`: rows of any SELECT over the lake's tables. Owns the command; starts no JVM if DuckDB gives equal rows."""

from __future__ import annotations

import sys

import click

from sqlmesh_like.app.operations.adhoc_query import query_rows
from sqlmesh_like.cli.commands.show import print_rows
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, at_release, in_environment, shared_options
from sqlmesh_like.errors import UsageError


@click.command("sql")
@click.argument("query")
@click.option("--output", type=click.Choice(["table", "json", "csv"]), default="table", help="Form of the rows.")
@click.option("--limit", type=int, default=20, help="Rows to print (-1: all).")
@at_release
@in_environment
@shared_options
def command(flags: Flags, query: str, output: str, limit: int, at: str | None) -> int:
    """Print the rows of a SELECT over tables and views of the project, in Spark's SQL.

    Name tables as schema.table, by name alone if it is unique, or by ref() and source(); `-` reads the query from
    standard input. DuckDB reads copy-on-write tables on this machine within a fraction of a second if it is known to
    compute what Spark would; otherwise Spark starts.
    """
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise UsageError("there is no query", hint='e.g. sml sql "select * from dws.user_agg"')
    print_rows(query_rows(open_project(flags), text, limit, at), output, limit, flags)
    return 0
