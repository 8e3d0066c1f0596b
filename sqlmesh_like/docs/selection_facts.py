"""Properties of nodes that selectors use, as plain values: the page's filter works like `plan.selector_methods`."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.plan.graph import SEMANTIC_TYPES, Node
from sqlmesh_like.project.versions import Version


def selection_facts(node: Node) -> dict[str, object]:
    """Return a node's properties; empty ones are left out.

    >>> config = {"enabled": True, "meta": {}, "alias": None}
    >>> selection_facts(Node("model.p.m", "m", "model", "models/m.sql", ("p", "m"), config=config))
    {'name': 'm', 'fqn': ['p', 'm'], 'path': 'models/m.sql', 'config': {'enabled': 'true'}}
    """
    facts = {
        "name": node.name,
        "fqn": list(node.fqn),
        "path": node.path,
        "source": node.source_name,
        "config": {} if node.resource_type in SEMANTIC_TYPES else _words(node.config),
        "test_type": node.test_type,
        "tests": node.tests,
        "version": _version(node.version),
    }
    return {key: value for key, value in facts.items() if value not in (None, {})}


def _words(setting: object) -> object:
    """Return a setting as selectors compare it: texts, lists of texts, or mappings of these; None for null."""
    match setting:
        case Mapping():
            kept = {str(key): _words(value) for key, value in setting.items()}
            return {key: value for key, value in kept.items() if value not in (None, {}, [])}
        case list() | tuple():
            return [str(_words(part)) for part in setting if part is not None]
        case bool():
            return str(setting).lower()
        case None:
            return None
    return str(setting)


def _version(version: Version | None) -> dict[str, object] | None:
    if version is None:
        return None
    side = "latest" if version.is_latest else "prerelease" if version.is_after_latest else "old"
    return {"of": version.of, "side": side}
