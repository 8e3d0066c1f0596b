"""What templates know of their node: `model`, the project's `graph`, and `context`. Owns which of it counts as a query.

Values that follow from a node's own file are available at once. Those that depend on the whole project are empty while
it is read; reading them counts as a query, so that the node is rendered again when it runs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping

DEFAULT_SETTINGS: Mapping[str, object] = {
    "enabled": True,
    "tags": [],
    "meta": {},
    "grants": {},
    "quoting": {},
    "column_types": {},
    "persist_docs": {},
    "packages": [],
    "on_schema_change": "ignore",
    "access": "protected",
    "docs": {"show": True, "node_color": None},
    "contract": {"enforced": False, "alias_types": True},
}
"""Settings that every node of dbt has, with their defaults."""
_OF_GRAPH = (
    "nodes", "sources", "exposures", "groups", "metrics", "semantic_models", "saved_queries", "functions"
)  # fmt: skip
_OF_WHOLE_PROJECT: Mapping[str, object] = {
    "depends_on": {"nodes": [], "macros": []},
    "refs": [],
    "sources": [],
    "metrics": [],
    "checksum": {"name": "sha256", "checksum": ""},
    "test_metadata": {},
    "attached_node": None,
    "column_name": None,
    "file_key_name": None,
    "constraints": [],
    "group": None,
}
Entries = Callable[[], Mapping[str, object]]


def default_setting(key: str) -> object:
    """A new copy of dbt's default of a setting; None if it has none."""
    return copy.deepcopy(DEFAULT_SETTINGS.get(key))


class TemplateNode(dict[str, object]):
    """`model` of templates: the node's entry of manifest.json, as far as it is known."""

    __slots__ = ("_entries", "_note")

    def __init__(self, known: Mapping[str, object], entries: Entries | None, note: Callable[[], None]) -> None:
        super().__init__(known)
        self._entries, self._note = entries, note

    def __missing__(self, key: str) -> object:
        if key not in _OF_WHOLE_PROJECT:
            raise KeyError(key)
        self._note()
        nodes = {} if self._entries is None else self._entries()["nodes"]
        entry = nodes.get(self["unique_id"], {}) if isinstance(nodes, Mapping) else {}
        return copy.deepcopy(entry.get(key, _OF_WHOLE_PROJECT[key]))

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in _OF_WHOLE_PROJECT

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self else default  # noqa: SIM401 (it is what `get` is here)


class ProjectGraph(Mapping[str, object]):
    """`graph` of templates: `nodes`, `sources` and so on as in manifest.json. Reading it counts as a query.

    As in dbt it is empty while the project is read, when not all nodes are known. `kept` holds values that packages set
    by `setdefault` for nodes that are rendered later.
    """

    __slots__ = ("_entries", "_kept", "_note")

    def __init__(self, entries: Entries | None, note: Callable[[], None], kept: dict[str, object]) -> None:
        self._entries, self._note = entries, note
        self._kept = {} if entries is None else kept

    def __getitem__(self, key: str) -> object:
        if key in self._kept:
            return self._kept[key]
        if key not in _OF_GRAPH:
            raise KeyError(key)
        self._note()
        return {} if self._entries is None else self._entries().get(key, {})

    def setdefault(self, key: str, value: object = None) -> object:
        self._note()
        return self[key] if key in _OF_GRAPH else self._kept.setdefault(key, value)

    def __iter__(self) -> Iterator[str]:
        return iter((*_OF_GRAPH, *self._kept))

    def __len__(self) -> int:
        return len(_OF_GRAPH) + len(self._kept)


class TemplateNames(Mapping[str, object]):
    """`context` of templates: all names in scope of the node's template, including those of macros."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Mapping[str, object]) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> object:
        return self._scope[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scope)

    def __len__(self) -> int:
        return len(self._scope)
