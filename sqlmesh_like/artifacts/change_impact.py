"""The impact of changes between two manifests on tables. Owns when a change forces a rebuild, by the queries alone.

Two queries are the same if they differ only in comments, layout and letter case of names, and their inputs are the
same: views by their queries, tables by their location. The state of the lake is not considered: `sml explain` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.nesting import parse_text
from sqlmesh_like.artifacts.compare import node_differences, nodes_of
from sqlmesh_like.artifacts.json_objects import Artifact, mapping_of
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.state_comparison import StateDifference

Impact = Literal["rebuild", "first_build", "reload", "follow", "none", "left"]
"""What the next run does to a node's table. `follow`: apply changes of its inputs; `left`: no run writes it again."""

_KINDS = ("model", "seed", "test", "source", "analysis", "exposure")
_NOT_LISTED = ("snapshot", "unit_test", "semantic_model", "metric", "saved_query")
_DECIDING = ("partition_by", "unique_key", "table_type")
_WITHOUT_TABLE = ("view", "ephemeral")


@dataclass(frozen=True)
class ChangedNode:
    """A node that is new, modified or removed. `downstream`: ids of models that read it, directly or indirectly."""

    unique_id: str
    name: str
    resource_type: str
    path: str
    change: Literal["new", "modified", "removed"]
    differences: tuple[StateDifference, ...]
    effect: Impact
    why: str
    downstream: tuple[str, ...]


@dataclass(frozen=True)
class AffectedNode:
    """An unchanged model downstream of changed nodes. `because`: their ids."""

    unique_id: str
    effect: Impact
    because: tuple[str, ...]


class ImpactAnalysis:
    """The changes from one manifest to another."""

    def __init__(self, old: Artifact, new: Artifact) -> None:
        differences = node_differences(old, new)
        self._differences = {i: kinds for i, kinds in differences.items() if NodeId.parse(i).kind not in _NOT_LISTED}
        is_compiled = _has_spark_sql(old) and _has_spark_sql(new)
        macros = () if is_compiled else (i for i, kinds in self._differences.items() if "macros" in kinds)
        self._old, self._new = _Queries(old, is_compiled), _Queries(new, is_compiled, frozenset(macros))

    def changes(self) -> tuple[ChangedNode, ...]:
        """Return new, modified and removed nodes of the types in `_KINDS`, sorted by unique id; no removed tests."""
        before, after = self._old.nodes, self._new.nodes
        modified = {i: kinds for i, kinds in self._differences.items() if kinds or self._is_rendered_otherwise(i)}
        new = [unique_id for unique_id in after if unique_id not in self._differences]
        # dbt names some tests with a hash, so a missing id does not mean that a test was removed; and no rows depend on
        # tests.
        removed = [i for i in before if i not in after and before[i]["resource_type"] != "test"]
        nodes = [self._changed_node(unique_id, after[unique_id], kinds) for unique_id, kinds in modified.items()]
        nodes += [self._changed_node(unique_id, after[unique_id], None) for unique_id in new]
        nodes += [self._removed_node(unique_id, before[unique_id]) for unique_id in removed]
        return tuple(sorted(nodes, key=lambda changed: changed.unique_id))

    def affected_models(self, changes: Iterable[ChangedNode]) -> tuple[AffectedNode, ...]:
        """Return unchanged models downstream of changed nodes, sorted by unique id."""
        causes: dict[str, list[str]] = {}
        for change in changes:
            for unique_id in change.downstream:
                causes.setdefault(unique_id, []).append(change.unique_id)
        return tuple(
            AffectedNode(unique_id, self._of_model(unique_id)[0], tuple(causes[unique_id]))
            for unique_id in sorted(causes)
            if self._differences.get(unique_id) == frozenset() and not self._is_rendered_otherwise(unique_id)
        )

    def _is_rendered_otherwise(self, unique_id: str) -> bool:
        """Whether unchanged files are rendered to another query, by a variable, the environment or the target."""
        if self._new.nodes[unique_id]["resource_type"] != "model":
            return False
        return self._old.query(unique_id) != self._new.query(unique_id)

    def _changed_node(self, unique_id: str, node: Artifact, kinds: Set[StateDifference] | None) -> ChangedNode:
        effect, why = self._effect(unique_id, node, is_new=kinds is None)
        listed = tuple(sorted(kinds or ()))
        change: Literal["new", "modified"] = "new" if kinds is None else "modified"
        below = self._new.below(unique_id)
        return ChangedNode(unique_id, *_name_type_path(node), change, listed, effect, why, below)

    def _removed_node(self, unique_id: str, node: Artifact) -> ChangedNode:
        kind = node["resource_type"]
        effect: Impact = "left" if kind == "seed" or (kind == "model" and not _is_virtual(node)) else "none"
        why = "its table stays in the lake until someone removes it" if effect == "left" else ""
        return ChangedNode(unique_id, *_name_type_path(node), "removed", (), effect, why, ())

    def _effect(self, unique_id: str, node: Artifact, *, is_new: bool) -> tuple[Impact, str]:
        match node["resource_type"]:
            case "model" if is_new:
                return ("none", "a view, inlined where it is read") if _is_virtual(node) else ("first_build", "new")
            case "model":
                return self._of_model(unique_id)
            case "seed":
                return "reload", "readers follow the rows that differ"
            case "source" if not is_new:
                return "none", "it lies elsewhere: its readers are rebuilt"
            case _:
                return "none", ""

    def _of_model(self, unique_id: str) -> tuple[Impact, str]:
        old, new = self._old.nodes[unique_id], self._new.nodes[unique_id]
        if _is_virtual(new):
            return "none", "a view, inlined where it is read"
        if _is_virtual(old):
            return "first_build", "it was a view"
        if _place(old) != _place(new):
            return "first_build", "its location changed; the old table stays"
        settings = [key for key in _DECIDING if _differs(_config(old), _config(new), key)]
        if settings:
            return "rebuild", f"{' and '.join(settings)} changed"
        if self._old.meaning(unique_id) != self._new.meaning(unique_id):
            return "rebuild", self._why(unique_id)
        return "follow", "its query and layout are the same"

    def _why(self, unique_id: str) -> str:
        if self._old.query(unique_id) == self._new.query(unique_id):
            return "a view that it reads, or the location of a table, changed"
        is_same_text = not {"body", "macros"} & self._differences[unique_id]
        return "a variable, the environment or the target changed its query" if is_same_text else "its query changed"


class _Queries:
    """The queries of one manifest, comparable with those of another.

    Without compiled Spark SQL (dbt's `parse`, or another adapter's SQL) templates are compared instead; `macros` are
    then the nodes that call a changed macro.
    """

    def __init__(self, manifest: Artifact, is_compiled: bool, macros: frozenset[str] = frozenset()) -> None:
        self.nodes = nodes_of(manifest, _KINDS)
        self._is_compiled = is_compiled
        self._macros = macros
        self._queries: dict[str, object] = {}
        self._meanings: dict[str, object] = {}

    @cached_property
    def _by_place(self) -> dict[tuple[str, str], str]:
        return {
            (str(node.get("schema")).lower(), str(node.get("alias") or node.get("identifier")).lower()): unique_id
            for unique_id, node in self.nodes.items()
            if node["resource_type"] in ("model", "seed", "source")
        }

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        children: dict[str, list[str]] = {}
        for unique_id, node in self.nodes.items():
            for parent in _inputs(node):
                children.setdefault(parent, []).append(unique_id)
        return children

    def below(self, unique_id: str) -> tuple[str, ...]:
        """Return ids of the models that read a node, directly or indirectly, sorted."""
        ids: set[str] = set()
        waiting = [unique_id]
        while waiting:
            children = self._children.get(waiting.pop(), [])
            waiting += [child for child in children if child not in ids]
            ids.update(children)
        models = (child for child in ids if child in self.nodes and self.nodes[child]["resource_type"] == "model")
        return tuple(sorted(models))  # children that are not in `nodes`, such as unit tests, are left out

    def meaning(self, unique_id: str) -> object:
        """Return the normalized query with the meaning of each input: a view's query or a table's location."""
        if unique_id not in self._meanings:
            node = self.nodes[unique_id]
            inputs = [(parent, self._stands_for(parent)) for parent in sorted(_inputs(node)) if parent in self.nodes]
            self._meanings[unique_id] = (self.query(unique_id), inputs)
        return self._meanings[unique_id]

    def query(self, unique_id: str) -> object:
        """Return the model's own query, normalized, with inputs named by their unique ids."""
        if unique_id not in self._queries:
            node = self.nodes[unique_id]
            raw = str(node.get("raw_code") or "").strip(), unique_id in self._macros
            is_sql = self._is_compiled and node.get("language") != "python"
            self._queries[unique_id] = (
                self._normalize_query(str(node["compiled_code"])) if is_sql else (raw, _config_text(node))
            )
        return self._queries[unique_id]

    def _stands_for(self, unique_id: str) -> object:
        node = self.nodes[unique_id]
        if node["resource_type"] == "model" and _is_virtual(node):
            return self.meaning(unique_id)
        return "table", _place(node)

    def _normalize_query(self, text: str) -> str:
        try:
            tree = parse_text(text)
        except SqlglotError:  # reported elsewhere, with its location; here the text is compared
            return text.strip()
        for table in tree.find_all(exp.Table):
            unique_id = self._by_place.get((table.db.lower(), table.name.lower()))
            if unique_id is not None and table.db:
                table.set("db", None)
                table.set("catalog", None)
                table.set("this", exp.to_identifier(unique_id, quoted=True))
        return tree.sql(SPARK, comments=False, normalize=True)


def _config_text(node: Artifact) -> str:
    """Return the settings that a Python model reads, as text."""
    config = _config(node)
    keys = config.get("config_keys_used")
    return repr([(key, config.get(str(key))) for key in keys] if isinstance(keys, list) else [])


def _has_spark_sql(manifest: Artifact) -> bool:
    """Whether every model has compiled Spark SQL. A manifest without metadata is that of the current project."""
    adapter = mapping_of(manifest.get("metadata")).get("adapter_type", "spark")
    models = (node for node in nodes_of(manifest, _KINDS).values() if node["resource_type"] == "model")
    return adapter in ("spark", "databricks") and all(node.get("compiled_code") for node in models)


def _name_type_path(node: Artifact) -> tuple[str, str, str]:
    return str(node["name"]), str(node["resource_type"]), str(node.get("original_file_path"))


def _inputs(node: Artifact) -> list[str]:
    unique_ids = mapping_of(node.get("depends_on")).get("nodes")
    return [str(unique_id) for unique_id in unique_ids] if isinstance(unique_ids, list) else []


def _is_virtual(node: Artifact) -> bool:
    return _config(node).get("materialized") in _WITHOUT_TABLE


def _place(node: Artifact) -> str:
    """Return a table's location by the project's settings: another target does not change it."""
    if node["resource_type"] == "source":
        return f"{node.get('schema')}.{node.get('identifier')}"
    config = _config(node)
    return f"{config.get('schema')}.{config.get('alias')}"


def _differs(old: Artifact, new: Artifact, key: str) -> bool:
    """Whether a setting that both manifests have differs; a text equals a list of this text."""
    lists = [[entry[key]] if isinstance(entry[key], str) else entry[key] or [] for entry in (old, new) if key in entry]
    return len(lists) == 2 and lists[0] != lists[1]


def _config(node: Artifact) -> Artifact:
    return mapping_of(node.get("config"))
