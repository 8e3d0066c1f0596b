"""`sml parse`: read the project and write its manifest. Owns the command; starts no JVM."""

from __future__ import annotations

from collections import Counter

import click

from sqlmesh_like.artifacts.manifest import write_manifest
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.counts import counted_nodes
from sqlmesh_like.plan.graph import SEMANTIC_TYPES


@click.command("parse")
@within_limits
@shared_options
def command(flags: Flags) -> None:
    """Read the project and write manifest.json; `compile` checks its SQL. Starts no JVM."""
    loaded = open_project(flags)
    path = loaded.target_folder / "manifest.json"
    write_manifest(path, loaded.project, loaded.manifest_text())
    nodes, output = loaded.graph.nodes, make_output(flags)
    output.line(f"Parsed {len(nodes)} nodes of {loaded.project.name}; wrote {loaded.project.target_path}/manifest.json")
    types = Counter[str](node.resource_type for node in nodes.values() if node.resource_type in SEMANTIC_TYPES)
    if types:
        output.line(f"{', '.join(counted_nodes(types))} are listed; nothing here computes them")
