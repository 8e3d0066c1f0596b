"""`sml parse`: reads the project and writes its manifest. Owns the command; no JVM."""

from __future__ import annotations

import click

from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.cli.checking import check_project
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.options import Flags, shared_options


@click.command("parse")
@shared_options
def command(flags: Flags) -> None:
    """Read and check the project and write manifest.json. Starts no JVM."""
    loaded = load(flags)
    check_project(loaded, [node.unique_id for node in loaded.selected("model")])
    path = loaded.target_folder / "manifest.json"
    write_manifest(path, loaded.project, loaded.manifest)
    count = len(loaded.graph.nodes)
    make_output(flags).line(
        f"Parsed {count} nodes of {loaded.project.name}; wrote {loaded.project.target_path}/manifest.json"
    )
