"""`sml ddl`: statements that declare a table to Hive or Athena. Owns the command; starts no JVM."""

from __future__ import annotations

from typing import cast

import click

from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import load
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.external_table import DdlDialect, external_ddl


@click.command("ddl")
@click.argument("table", shell_complete=complete_names)
@click.option("--dialect", type=click.Choice(["hive", "athena"]), default="hive", help="Who is to read the table.")
@shared_options
def command(flags: Flags, table: str, dialect: str) -> int:
    """Print the DDL of an external table over a Hudi table, with Hudi's metadata columns and its partitions."""
    lake = open_lake(load(flags))
    place = lake.catalog.find(table)
    state = lake.catalog.state(place.unique_id)
    if state.kind not in ("cow", "mor"):
        raise NodeError(f"{place.table} is not a Hudi table yet", hint="run `sml ingest` or `sml run` first")
    for statement in external_ddl(place.table, state, cast(DdlDialect, dialect)):
        click.echo(f"{statement};\n")
    return 0
