"""`sml ls`: the selected nodes. Owns the command and its three forms of output; no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from sqlmesh_like.cli.context import Loaded, load
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.plan.graph import Node

_TYPES = ("model", "seed", "snapshot", "source", "test", "unit_test", "exposure", "analysis", "all", "default")
_PREFIXES = {"source": "source:", "exposure": "exposure:"}
_CONFIG = ("enabled", "materialized", "schema", "alias", "tags", "unique_key", "partition_by", "table_type", "refresh")


@click.command("ls")
@click.option(
    "--output",
    "form",
    type=click.Choice(["name", "path", "json", "selector"]),
    default="selector",
    help="What to print of each node.",
)
@click.option("--resource-type", "types", multiple=True, type=click.Choice(_TYPES), help="Only nodes of this type.")
@shared_options
def command(flags: Flags, form: str, types: tuple[str, ...]) -> None:
    """List the selected nodes, every one after its inputs. Starts no JVM."""
    loaded = load(flags)
    wanted = () if {"all", "default"} & set(types) else types
    for line in lines(loaded, loaded.selected(*wanted), form):
        click.echo(line)


def lines(loaded: Loaded, nodes: Iterable[Node], form: str) -> list[str]:
    """One line a node, in dbt's forms."""
    match form:
        case "name":
            return [node.name for node in nodes]
        case "path":
            return [node.path for node in nodes]
        case "json":
            return [json.dumps(_record(loaded, node), ensure_ascii=False) for node in nodes]
        case _:
            return [f"{_PREFIXES.get(node.resource_type, '')}{'.'.join(node.fqn)}" for node in nodes]


def _record(loaded: Loaded, node: Node) -> dict[str, object]:
    shown = {key: node.config[key] for key in _CONFIG if node.config.get(key) is not None}
    return {
        "unique_id": node.unique_id,
        "name": node.name,
        "resource_type": node.resource_type,
        "package_name": loaded.project.name,
        "original_file_path": node.path,
        "tags": list(node.tags),
        "config": shown,
        "depends_on": {"nodes": list(loaded.graph.parents(node.unique_id))},
    }
