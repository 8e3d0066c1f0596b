"""`sml schema`: JSON Schema for editors. Owns the command; needs no project."""

from __future__ import annotations

import click

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES, file_json_schema
from sqlmesh_like.cli.printing.writer import echo_json


@click.command("schema")
@click.argument("kind", type=click.Choice(list(SCHEMA_FILES)), default="properties")
def command(kind: str) -> None:
    """Print the JSON Schema of a kind of file: its keys, their values, defaults and meaning.

    Editors complete and check YAML with it: write it to a file, and name the file in VS Code's yaml.schemas.
    """
    echo_json(file_json_schema(kind), indent=2)
