"""`saved_queries:` of properties YAML. Owns their keys."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.names import NodeId
from sqlmesh_like.project.folder_config import FolderConfig
from sqlmesh_like.project.keys.shape import Key, Shape
from sqlmesh_like.project.keys.value_types import each, entry, filters, plain_mapping, text, texts, whole_number
from sqlmesh_like.project.reading.yaml_node import YamlNode
from sqlmesh_like.project.semantic.config import Config, merged_config
from sqlmesh_like.project.semantic.declarations import NamedInput, SavedQuery

_NAME = Key(text, is_required=True)
_TEXT = Key(text)
_QUERY = Shape("query_params", {
    "metrics": Key(texts, ()), "group_by": Key(texts, ()), "where": Key(filters), "order_by": Key(texts, ()),
    "limit": Key(whole_number),
})  # fmt: skip
_EXPORT = Shape("an export", {"name": _NAME, "config": Key(plain_mapping, {})})
SAVED_QUERY = Shape("a saved query", {
    "name": _NAME, "query_params": Key(entry(_QUERY), is_required=True, example={"metrics": ["sales"]}),
    "description": _TEXT, "label": _TEXT,
    "exports": Key(each(_EXPORT), ()), "tags": Key(texts, ()), "config": Key(plain_mapping, {}),
})  # fmt: skip
_DEFAULTS: Config = {"export_as": None, "schema": None, "cache": {"enabled": False}}
_DESTINATIONS = ("table", "view")


def parse_saved_query(node: YamlNode, settings: FolderConfig) -> SavedQuery:
    """One entry, with its templates rendered. Raises ProjectError at the first wrong key or value."""
    keys = SAVED_QUERY.read(node)
    name, project = str(keys.pop("name")), settings.settings.name
    fqn = (project, *settings.folders(node.location.path), name)
    config = {**_DEFAULTS, **merged_config("saved-queries", fqn, node, settings)}
    tags = tuple(sorted({*_words(keys["tags"]), *_words(config.get("tags"))}))
    exports = node.get("exports")
    named = node.children["query_params"].get("metrics")
    elements = () if named is None else named.elements or (named,)
    return SavedQuery(
        unique_id=NodeId("saved_query", project, name),
        name=name,
        fqn=fqn,
        declared_at=node.location,
        config=config,
        keys={**keys, "exports": [_export(one, config) for one in (() if exports is None else exports.elements)]},
        tags=tags,
        metrics=tuple(NamedInput(str(one.value), one.location) for one in elements if one.value != []),
    )


def _export(node: YamlNode, of: Config) -> dict[str, object]:
    """One export; its own settings override those of its saved query."""
    entry = _EXPORT.read(node)
    own = entry["config"]
    assert isinstance(own, Mapping)
    said = {**of, **own}
    destination = said.get("export_as")
    if destination not in _DESTINATIONS:
        shown = "it needs 'export_as'" if destination is None else f"export_as is {destination!r}"
        hint = f"write config: {{export_as: {' | '.join(_DESTINATIONS)}}}"
        raise node.error(f"export {entry['name']!r}: {shown}", hint)
    schema = said.get("schema_name") or said.get("schema")
    config = {"export_as": destination, "schema_name": schema, "alias": said.get("alias") or entry["name"]}
    return {"name": entry["name"], "config": {**config, "database": None}, "unrendered_config": dict(own)}


def _words(value: object) -> list[str]:
    if value is None:
        return []
    return [str(word) for word in value] if isinstance(value, list | tuple) else [str(value)]
