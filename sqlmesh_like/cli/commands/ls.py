"""`sml ls`: the selected nodes. Owns the command and its forms of output; starts no JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import click

from sqlmesh_like.app.invocation import ResourceTypes
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.artifacts.json_objects import mapping_of
from sqlmesh_like.cli.context import open_project
from sqlmesh_like.cli.options import Flags, shared_options, within_limits
from sqlmesh_like.cli.printing.writer import echo, echo_json
from sqlmesh_like.cli.resource_types import resource_types
from sqlmesh_like.control_characters import escape_json, escape_line
from sqlmesh_like.plan.graph import BY_NAME, Node

_KINDS = ("nodes", "sources", "exposures", "unit_tests", "semantic_models", "metrics", "saved_queries")
_CONFIG = ("enabled", "materialized", "schema", "alias", "tags", "unique_key", "partition_by", "table_type", "refresh")


@click.command("ls")
@within_limits
@click.option(
    "--output",
    "form",
    type=click.Choice(["name", "path", "json", "selector"]),
    default="selector",
    help="What to print of each node.",
)
@click.option("--output-keys", "keys", multiple=True, metavar="KEY…", help="Only these keys of json, such as config.x.")
@click.option("--orphans", is_flag=True, help="List tables whose nodes are gone or disabled, instead of nodes.")
@resource_types
@shared_options
def command(flags: Flags, form: str, keys: tuple[str, ...], orphans: bool, types: ResourceTypes) -> None:
    """List the selected nodes, inputs first. Starts no JVM.

    `--orphans` lists tables of the warehouse that nodes of this project wrote, by what their commits record, and that
    no node has any more, with rows, size and newest commit; `sml clean --orphans` drops them.
    """
    wanted_keys = tuple(word for text in keys for word in text.replace(",", " ").split())
    if orphans:
        _list_orphans(flags, form, wanted_keys, types)
        return
    loaded = open_project(flags)
    if any(source.ingest for source in loaded.project.sources):
        from sqlmesh_like.app.loading.source_discovery import with_dead_letters  # slow to import

        loaded = with_dead_letters(loaded)
    wanted = [node for node in loaded.select_nodes() if types.take(node.resource_type)]
    for line in lines(loaded, wanted, form, wanted_keys):
        echo(line if form == "json" else escape_line(line))


def _list_orphans(flags: Flags, form: str, keys: tuple[str, ...], types: ResourceTypes) -> None:
    from sqlmesh_like.app.lakes.orphans import find_orphans  # slow to import
    from sqlmesh_like.cli.orphans import orphan_record, orphans_table, report_left_alone, require_unselected

    require_unselected(flags)
    loaded = open_project(flags)
    orphans = find_orphans(loaded)
    report_left_alone(loaded, orphans)
    wanted = [orphan for orphan in orphans.tables if types.take(orphan.unique_id.kind)]
    match form:
        case "name" | "path":
            for orphan in wanted:
                echo(escape_line(str(orphan.table) if form == "name" else orphan.uri))
        case "json":
            for orphan in wanted:
                record = orphan_record(orphan)
                chosen = {key: record[key] for key in keys if key in record} if keys else record
                echo_json(chosen)
        case _:
            echo(orphans_table(wanted) if wanted else "no orphans")


def lines(loaded: Loaded, nodes: Iterable[Node], form: str, keys: tuple[str, ...] = ()) -> list[str]:
    """Return one line per node, in dbt's forms; `keys`: the keys of JSON objects."""
    match form:
        case "name":
            return [f"{node.version.of}.v{node.version.v}" if node.version else node.name for node in nodes]
        case "path":
            return [node.path for node in nodes]
        case "json":
            make = _manifest_lookup(loaded, keys) if keys else lambda node: _record(loaded, node)
            return [escape_json(json.dumps(make(node), ensure_ascii=False, default=str)) for node in nodes]
        case _:
            return [_selector(node) for node in nodes]


def _selector(node: Node) -> str:
    """Return a selector that matches only this node; as in dbt, without folders for sources, exposures and metrics."""
    if node.source_name is not None:
        return f"source:{node.fqn[0]}.{node.source_name}.{node.name}"
    return f"{node.resource_type}:{node.fqn[0]}.{node.name}" if node.resource_type in BY_NAME else ".".join(node.fqn)


def _manifest_lookup(loaded: Loaded, keys: tuple[str, ...]) -> Callable[[Node], dict[str, object]]:
    """Return a function from a node to these keys as in manifest.json; as in dbt, those that it does not have are
    left out, and nested ones without a value."""
    manifest = loaded.manifest
    known = {unique_id: node for kind in _KINDS for unique_id, node in mapping_of(manifest.get(kind)).items()}

    def record(node: Node) -> dict[str, object]:
        entry = mapping_of(known.get(node.unique_id))
        chosen = ((key, _inside(entry, key.split("."))) for key in keys)
        return {key: value for key, value in chosen if value is not None or key in entry}

    return record


def _inside(value: object, path: list[str]) -> object:
    for name in path:
        value = mapping_of(value).get(name)
    return value


def _record(loaded: Loaded, node: Node) -> dict[str, object]:
    config = {key: node.config[key] for key in _CONFIG if node.config.get(key) is not None}
    return {
        "unique_id": node.unique_id,
        "name": node.name,
        "resource_type": node.resource_type,
        "package_name": node.unique_id.package,
        "original_file_path": node.path,
        "tags": list(node.tags),
        "config": config,
        "depends_on": {"nodes": list(loaded.graph.parents(node.unique_id))},
    }
