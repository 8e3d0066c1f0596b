"""`sml source freshness`: `sml freshness` under dbt's name. Owns only the group."""

from __future__ import annotations

import click

from sqlmesh_like.cli.commands.freshness import command as freshness


@click.group("source")
def command() -> None:
    """Checks of sources."""


command.add_command(freshness)
