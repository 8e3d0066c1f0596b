"""Selection in dbt's words. Owns `+m+`, `2+m`, `@m`, methods (`tag:` …), union, intersection and exclusion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from sqlmesh_like.errors import SelectionError, nearest
from sqlmesh_like.plan.graph import Graph, Node

_TERM = re.compile(r"(?P<at>@)?(?:(?P<up>\d*)(?P<parents>\+))?(?P<body>[^+@]+?)(?:(?P<children>\+)(?P<down>\d*))?")
_METHOD = re.compile(r"(?P<method>[a-z_]+(?:\.[\w.]+)?):(?P<value>.+)")


@dataclass(frozen=True)
class _Term:
    """One selector without spaces and commas. A depth of None is without limit."""

    text: str
    method: str
    value: str
    parents: bool
    parents_depth: int | None
    children: bool
    children_depth: int | None
    at: bool


def select(graph: Graph, select: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Unique ids of the selected nodes, every one after its inputs. Nothing in `select` means every node.

    A test comes along as soon as one node that it reads is selected (dbt's eager mode), and goes with any that is
    excluded. Raises SelectionError for a malformed selector and for a selection that matches nothing.
    """
    chosen = _union(graph, select) if select else frozenset(graph.nodes)
    if exclude:
        chosen -= _union(graph, exclude, must_match=False)
    if not chosen:
        raise SelectionError(f"nothing is left of the selection {_spelt(select, exclude)}")
    return graph.order(chosen)


def _spelt(select: tuple[str, ...], exclude: tuple[str, ...]) -> str:
    chosen = f"--select {' '.join(select)}" if select else "of everything"
    return f"{chosen} --exclude {' '.join(exclude)}" if exclude else chosen


def _union(graph: Graph, words: tuple[str, ...], must_match: bool = True) -> frozenset[str]:
    selectors = [word for text in words for word in text.split()]
    found: frozenset[str] = frozenset()
    for selector in selectors:
        matched = _intersection(graph, selector)
        if not matched and must_match:
            raise SelectionError(f"selector {selector!r} matches nothing", hint=_hint(graph, selector))
        found |= matched
    return found


def _intersection(graph: Graph, selector: str) -> frozenset[str]:
    terms = [_parse(word) for word in selector.split(",")]
    sets = [_expand(graph, term) for term in terms]
    return frozenset.intersection(*sets)


def _parse(word: str) -> _Term:
    found = _TERM.fullmatch(word)
    if found is None or (found["at"] and (found["parents"] or found["children"])):
        raise SelectionError(f"selector {word!r} is malformed", hint="write m, +m, m+, 2+m, m+3, @m, tag:x, path:x …")
    method = _METHOD.fullmatch(found["body"])
    if method is not None and method["method"].partition(".")[0] not in _METHODS:
        hint = nearest(method["method"], _METHODS) or f"known methods: {', '.join(_METHODS)}"
        raise SelectionError(f"selector {word!r} has the unknown method {method['method']!r}", hint=hint)
    return _Term(
        text=word,
        method=method["method"] if method else _implied_method(found["body"]),
        value=method["value"] if method else found["body"],
        parents=bool(found["parents"]),
        parents_depth=int(found["up"]) if found["up"] else None,
        children=bool(found["children"]),
        children_depth=int(found["down"]) if found["down"] else None,
        at=bool(found["at"]),
    )


def _implied_method(body: str) -> str:
    """As in dbt: a path has a slash, a file a suffix, everything else is a name."""
    if "/" in body:
        return "path"
    return "file" if body.endswith((".sql", ".csv")) else "fqn"


def _expand(graph: Graph, term: _Term) -> frozenset[str]:
    found = _matches(graph, term)
    expanded = set(found)
    for unique_id in found:
        if term.at:
            below = {unique_id, *graph.descendants(unique_id)}
            expanded |= below.union(*(graph.ancestors(node) for node in below))
        if term.parents:
            expanded |= graph.ancestors(unique_id, term.parents_depth)
        if term.children:
            expanded |= graph.descendants(unique_id, term.children_depth)
    # Before intersection, so that `orders,test_type:generic` are the generic tests of orders.
    return frozenset(expanded) | _tests_of(graph, frozenset(expanded))


def _matches(graph: Graph, term: _Term) -> frozenset[str]:
    method, _, argument = term.method.partition(".")
    test = _METHODS[method]
    return frozenset(unique_id for unique_id, node in graph.nodes.items() if test(node, term.value, argument))


def _by_fqn(node: Node, value: str, _: str) -> bool:
    if node.resource_type == "source":
        return False  # as in dbt: a source is chosen by source: only
    if fnmatchcase(node.name, value):
        return True
    parts = value.split(".")
    return any(_starts_with(fqn, parts) for fqn in (node.fqn, node.fqn[1:]))


def _starts_with(fqn: tuple[str, ...], parts: list[str]) -> bool:
    return len(parts) <= len(fqn) and all(fnmatchcase(have, want) for have, want in zip(fqn, parts, strict=False))


def _by_path(node: Node, value: str, _: str) -> bool:
    wanted = value.removeprefix("./").rstrip("/")
    path = PurePosixPath(node.path)
    return any(fnmatchcase(str(part), wanted) for part in (path, *path.parents))


def _by_file(node: Node, value: str, _: str) -> bool:
    return fnmatchcase(PurePosixPath(node.path).name, value)


def _by_tag(node: Node, value: str, _: str) -> bool:
    return any(fnmatchcase(tag, value) for tag in node.tags)


def _by_source(node: Node, value: str, _: str) -> bool:
    if node.source_name is None:
        return False
    source, _dot, table = value.rpartition(".") if value.count(".") == 1 else (value, "", "*")
    if value.count(".") == 2:  # project.source.table
        project, source, table = value.split(".")
        if not fnmatchcase(node.fqn[0], project):
            return False
    return fnmatchcase(node.source_name, source) and fnmatchcase(node.name, table)


def _by_config(node: Node, value: str, argument: str) -> bool:
    found: object = node.config
    for key in argument.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    values = found if isinstance(found, list | tuple) else [found]
    return any(fnmatchcase(_config_word(part), value) for part in values if part is not None)


def _config_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _by_resource_type(node: Node, value: str, _: str) -> bool:
    return node.resource_type == value or (value == "data_test" and node.resource_type == "test")


def _by_test_type(node: Node, value: str, _: str) -> bool:
    return node.resource_type == "test" and value in (node.test_type, "data")


def _by_test_name(node: Node, value: str, _: str) -> bool:
    return node.resource_type == "test" and fnmatchcase(node.name, f"{value}*")


def _by_package(node: Node, value: str, _: str) -> bool:
    return fnmatchcase(node.fqn[0], value) or value == "this"


_METHODS: Mapping[str, Callable[[Node, str, str], bool]] = {
    "fqn": _by_fqn,
    "path": _by_path,
    "file": _by_file,
    "tag": _by_tag,
    "source": _by_source,
    "config": _by_config,
    "resource_type": _by_resource_type,
    "test_type": _by_test_type,
    "test_name": _by_test_name,
    "package": _by_package,
}


def _tests_of(graph: Graph, chosen: frozenset[str]) -> frozenset[str]:
    found = {child for unique_id in chosen for child in graph.children(unique_id)}
    return frozenset(child for child in found if graph.nodes[child].resource_type == "test")


def _hint(graph: Graph, selector: str) -> str:
    words = [_parse(word).text for word in selector.split(",")]
    known = [*(node.search_name for node in graph.nodes.values())]
    known += [f"tag:{tag}" for node in graph.nodes.values() for tag in node.tags]
    bodies = [word.strip("+@0123456789") for word in words]
    hints = (nearest(body, known) or nearest(body.partition(":")[2], known) for body in bodies)
    return next((hint for hint in hints if hint), "see what there is: sml ls")
