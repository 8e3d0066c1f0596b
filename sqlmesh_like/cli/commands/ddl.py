"""`sml ddl`: statements that declare tables in another engine. Owns the command; starts no JVM."""

from __future__ import annotations

import click

from sqlmesh_like.app.lakes.table_history import table_ddl
from sqlmesh_like.app.operations.releases.released_ddl import released_ddl
from sqlmesh_like.cli.completion import complete_names
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.writer import echo_sql
from sqlmesh_like.errors import UsageError


@click.command("ddl")
@click.argument("table", required=False, shell_complete=complete_names)
@click.option("--dialect", type=click.Choice(["hive", "athena", "spark", "duckdb"]),
              help="Engine that reads the table (default: hive; with --release: spark).")  # fmt: skip
@click.option("--release", is_flag=True, help="As the current release has it; without TABLE all tables of the release.")
@click.option("--at", metavar="RELEASE", help="With --release: another release.")
@shared_options
def command(flags: Flags, table: str | None, dialect: str | None, release: bool, at: str | None) -> int:
    """Print the DDL of an external table over a Hudi table, with Hudi's metadata columns and its partitions.

    With --release it declares tables as one release has them, with the columns that models have: for Spark as global
    temporary views (schema__table), for DuckDB as views over the files of copy-on-write tables, for Hive as external
    tables and a setting of the session. Run what it prints again after each release: the files of an earlier one may be
    removed.
    """
    loaded = open_project(flags)
    if not release:
        if at is not None:
            raise UsageError("--at names a release", hint="add --release")
        if table is None:
            raise UsageError(
                "no table is named", hint="sml ddl TABLE, or sml ddl --release for all tables of a release"
            )
        match dialect:
            case "hive" | "athena":
                statements = table_ddl(loaded, table, dialect)
            case None:
                statements = table_ddl(loaded, table, "hive")
            case _:
                raise UsageError(f"--dialect {dialect} declares tables as of a commit", hint="add --release")
    else:
        match dialect:
            case "spark" | "duckdb" | "hive":
                declared = released_ddl(loaded, table, dialect, at)
            case None:
                declared = released_ddl(loaded, table, "spark", at)
            case _:
                hint = "spark, duckdb and hive can; Athena reads what `sml publish` writes to Parquet"
                raise UsageError(f"{dialect} reads Hudi tables at their newest commit only", hint=hint)
        echo_sql(f"-- release {declared.release.id}, of {declared.release.created_at}\n")
        statements = declared.statements
    for statement in statements:
        echo_sql(f"{statement};\n")
    return 0
