"""`sml schema`: JSON Schema for editors. Owns the command; needs no project."""

from __future__ import annotations

import json

import click

from sqlmesh_like.app.setup.file_schemas import SCHEMA_FILES, file_json_schema


@click.command("schema")
@click.argument("kind", type=click.Choice(list(SCHEMA_FILES)), default="properties")
def command(kind: str) -> None:
    """Print the JSON Schema of a kind of file: its keys, their values, defaults and meaning.

    Editors complete and check YAML with it: write it to a file, and name the file in VS Code's yaml.schemas.
    """
    click.echo(json.dumps(file_json_schema(kind), indent=2, ensure_ascii=False))
