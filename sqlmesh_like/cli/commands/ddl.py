"""`sml ddl`: statements that declare a table in Hive or Athena. Owns the command; starts no JVM."""

from __future__ import annotations

from typing import cast

import click

from sqlmesh_like.app.lakes.table_history import table_ddl
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.writer import echo_sql
from sqlmesh_like.hudi.external_table import DdlDialect


@click.command("ddl")
@click.argument("table", shell_complete=complete_names)
@click.option("--dialect", type=click.Choice(["hive", "athena"]), default="hive", help="Engine that reads the table.")
@shared_options
def command(flags: Flags, table: str, dialect: str) -> int:
    """Print the DDL of an external table over a Hudi table, with Hudi's metadata columns and its partitions."""
    for statement in table_ddl(open_project(flags), table, cast(DdlDialect, dialect)):
        echo_sql(f"{statement};\n")
    return 0
