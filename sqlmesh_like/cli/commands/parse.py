"""`sml parse`: reads the project and writes its manifest. Owns the command; no JVM."""

from __future__ import annotations

import click

from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options


@click.command("parse")
@shared_options
def command(flags: Flags) -> None:
    """Read the project and write manifest.json; `compile` checks its SQL. Starts no JVM."""
    loaded = load(flags)
    path = loaded.target_folder / "manifest.json"
    write_manifest(path, loaded.project, loaded.manifest_text())
    count = len(loaded.graph.nodes)
    make_output(flags).line(
        f"Parsed {count} nodes of {loaded.project.name}; wrote {loaded.project.target_path}/manifest.json"
    )
