"""The methods of selection: `tag:`, `path:`, `config.x:` … Owns which nodes each matches, operators left aside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sqlmesh_like.errors import SelectionError, nearest
from sqlmesh_like.plan.graph import SEMANTIC_TYPES, Graph, Node, ResourceType
from sqlmesh_like.plan.state_comparison import ComparisonState, result_test, source_test, state_test
from sqlmesh_like.project.selection import SelectorTerm
from sqlmesh_like.project.versions import Version


def matches(graph: Graph, term: SelectorTerm, past: ComparisonState | None) -> frozenset[str]:
    """Unique ids that the term's method and value match. Raises SelectionError if it needs a state and has none."""
    method, _, argument = term.method.partition(".")
    if method in _COMPARISONS:
        is_chosen = _COMPARISONS[method](past, term.value)
        return frozenset(unique_id for unique_id in graph.nodes if is_chosen(unique_id))
    test = _TESTS[method]
    value = graph.project if (method, term.value) == ("package", "this") else term.value
    return frozenset(unique_id for unique_id, node in graph.nodes.items() if test(node, value, argument))


def _by_fqn(node: Node, value: str, _: str) -> bool:
    if node.resource_type == "source":
        return False  # as in dbt, only `source:` matches sources
    if fnmatchcase(node.name, value) or (node.version is not None and fnmatchcase(node.version.of, value)):
        return True
    parts = value.split(".")
    if node.version is not None and parts == list(node.fqn[-2:]):
        return True
    return any(
        len(parts) <= len(fqn) and all(fnmatchcase(have, want) for have, want in zip(fqn, parts, strict=False))
        for fqn in (node.fqn, node.fqn[1:])
    )


def _by_path(node: Node, value: str, _: str) -> bool:
    wanted = value.removeprefix("./").rstrip("/")
    path = PurePosixPath(node.path)
    return any(fnmatchcase(str(part), wanted) for part in (path, *path.parents))


def _by_file(node: Node, value: str, _: str) -> bool:
    path = PurePosixPath(node.path)
    return fnmatchcase(path.name, value) or fnmatchcase(path.stem, value)


def _by_source(node: Node, value: str, _: str) -> bool:
    if node.source_name is None:
        return False
    source, _dot, table = value.rpartition(".") if value.count(".") == 1 else (value, "", "*")
    if value.count(".") == 2:  # project.source.table
        project, source, table = value.split(".")
        if not fnmatchcase(node.fqn[0], project):
            return False
    return fnmatchcase(node.source_name, source) and fnmatchcase(node.name, table)


def _by_name_of(kind: ResourceType) -> Callable[[Node, str, str], bool]:
    """`name` or `package.name` of nodes of one type."""

    def test(node: Node, value: str, _: str) -> bool:
        package, _dot, name = value.rpartition(".")
        is_there = node.resource_type == kind and fnmatchcase(node.name, name)
        return is_there and fnmatchcase(node.fqn[0], package or "*")

    return test


def _by_group(node: Node, value: str, _: str) -> bool:
    is_grouped = node.resource_type not in ("semantic_model", "saved_query")  # as in dbt
    return is_grouped and fnmatchcase(str(node.config.get("group") or ""), value)


def _by_config(node: Node, value: str, argument: str) -> bool:
    setting: object = {} if node.resource_type in SEMANTIC_TYPES else node.config  # as in dbt
    for key in argument.split("."):
        setting = setting.get(key) if isinstance(setting, Mapping) else None
    values = setting if isinstance(setting, list | tuple) else [setting]
    words = [str(part).lower() if isinstance(part, bool) else str(part) for part in values if part is not None]
    return any(fnmatchcase(word, value) for word in words)


def _by_test_type(node: Node, value: str, _: str) -> bool:
    if node.resource_type == "unit_test":
        return value == "unit"
    return node.resource_type == "test" and value in (node.test_type, "data")


def _by_test_name(node: Node, value: str, _: str) -> bool:
    """Match the generic test (`unique`), whatever name the data test was given; a unit test by its own name."""
    name = node.name if node.resource_type == "unit_test" else node.tests
    return name is not None and fnmatchcase(name, value)


def _by_version(node: Node, value: str, _: str) -> bool:
    """As in dbt, `none` matches models without versions, and `latest` only models that have versions."""
    if node.resource_type != "model":
        return False
    test = _SIDES.get(value)
    if test is None:
        hint = nearest(value, _SIDES) or f"known: {', '.join(f'version:{side}' for side in _SIDES)}"
        raise SelectionError(f"selector 'version:{value}' is none of version's", hint=hint)
    return test(node.version)


_SIDES: Mapping[str, Callable[[Version | None], bool]] = {
    "latest": lambda version: version is not None and version.is_latest,
    "prerelease": lambda version: version is not None and version.is_after_latest,
    "old": lambda version: version is not None and not version.is_latest and not version.is_after_latest,
    "none": lambda version: version is None,
}


_COMPARISONS: Mapping[str, Callable[[ComparisonState | None, str], Callable[[str], bool]]] = {
    "state": state_test,
    "result": result_test,
    "source_status": source_test,
}
_TESTS: Mapping[str, Callable[[Node, str, str], bool]] = {
    "fqn": _by_fqn,
    "path": _by_path,
    "file": _by_file,
    "tag": lambda node, value, _: any(fnmatchcase(tag, value) for tag in node.tags),
    "source": _by_source,
    "exposure": _by_name_of("exposure"),
    "semantic_model": _by_name_of("semantic_model"),
    "metric": _by_name_of("metric"),
    "saved_query": _by_name_of("saved_query"),
    "group": _by_group,
    "access": lambda node, value, _: node.resource_type == "model" and node.config.get("access") == value,
    "config": _by_config,
    "resource_type": lambda node, value, _: (
        node.resource_type == value or (value == "data_test" and node.resource_type == "test")
    ),
    "test_type": _by_test_type,
    "test_name": _by_test_name,
    "unit_test": _by_name_of("unit_test"),
    "package": lambda node, value, _: fnmatchcase(node.fqn[0], value),
    "version": _by_version,
}
