"""`selectors.yml`: selections with a name. Owns reading dbt's format; `selection` parses the words in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlmesh_like.errors import ProjectError, SelectionError, nearest
from sqlmesh_like.project.keys.selector_keys import DEFINITION, SELECTOR, SELECTORS
from sqlmesh_like.project.reading.files import read_text, relative
from sqlmesh_like.project.reading.values import ValueRenderer
from sqlmesh_like.project.reading.yaml_node import YamlNode, parse_yaml
from sqlmesh_like.project.selection import (
    INDIRECT,
    Indirect,
    Selector,
    SelectorDifference,
    SelectorIntersection,
    SelectorTerm,
    SelectorUnion,
    parse_word,
    unknown_method,
)

SELECTOR_FILES = ("selectors.yml", "selectors.yaml")


@dataclass(frozen=True)
class NamedSelectors:
    """The selectors of a project by name. `default` is the one used if a call selects nothing itself."""

    by_name: Mapping[str, Selector]
    default: Selector | None = None

    def find(self, name: str) -> Selector:
        """The selector of this name. Raises SelectionError with the nearest name."""
        if name in self.by_name:
            return self.by_name[name]
        known = f"known selectors: {', '.join(self.by_name)}" if self.by_name else "there is no selectors.yml"
        raise SelectionError(f"no selector is named {name!r}", hint=nearest(name, self.by_name) or known)


def load_selectors(root: Path, variables: Mapping[str, object]) -> NamedSelectors:
    """The selectors of a project's folder; none if there is no such file. Raises ProjectError with file and line."""
    path = next((root / name for name in SELECTOR_FILES if (root / name).is_file()), None)
    if path is None:
        return NamedSelectors({})
    node = ValueRenderer(variables, secrets=False).render(parse_yaml(read_text(path, root), relative(path, root)))
    SELECTORS.check(node)
    listed = node.get("selectors")
    return _Reader(listed.sequence("selectors") if listed else ()).read()


class _Reader:
    """Reads definitions; one may name another, before or after it."""

    def __init__(self, entries: tuple[YamlNode, ...]) -> None:
        self._entries: dict[str, YamlNode] = {}
        for entry in entries:
            SELECTOR.check(entry)
            name = _require_key(entry, "name").text("name")
            if name in self._entries:
                raise entry.error(f"selector {name!r} is defined twice")
            self._entries[name] = entry
        self._done: dict[str, Selector] = {}
        self._open: list[str] = []

    def read(self) -> NamedSelectors:
        by_name = {name: self._resolve_name(name, entry) for name, entry in self._entries.items()}
        flags = {name: entry.get("default") for name, entry in self._entries.items()}
        defaults = [name for name, flag in flags.items() if flag is not None and _boolean(flag, "default")]
        if len(defaults) > 1:
            message = f"selectors {' and '.join(map(repr, defaults))} are both the default"
            raise self._entries[defaults[1]].error(message, "keep `default: true` on one of them")
        return NamedSelectors(by_name, by_name[defaults[0]] if defaults else None)

    def _resolve_name(self, name: str, place: YamlNode) -> Selector:
        if name not in self._entries:
            raise place.error(f"no selector is named {name!r}", nearest(name, self._entries))
        if name in self._open:
            raise place.error(f"selectors use each other in a circle: {' -> '.join((*self._open, name))}")
        if name not in self._done:
            self._open.append(name)
            self._done[name] = self._definition(_require_key(self._entries[name], "definition"))
            self._open.pop()
        return self._done[name]

    def _definition(self, node: YamlNode) -> Selector:
        if isinstance(node.value, str):
            try:
                return SelectorUnion(tuple(parse_word(word) for word in node.text("a selector").split()))
            except SelectionError as error:
                raise ProjectError(error.message, location=node.location, hint=error.hint) from error
        node.mapping("a definition")
        if "union" in node.children or "intersection" in node.children:
            return self._set_operation(node)
        return self._method(node) if "method" in node.children else self._short(node)

    def _set_operation(self, node: YamlNode) -> Selector:
        if len(node.children) > 1:
            keys = " and ".join(node.children)
            raise node.error(f"a definition is one of union and intersection, not {keys}", "nest one in the other")
        ((key, listed),) = node.items()
        parts, minus = self._parts(listed.sequence(key), key)
        if not parts:
            raise listed.error(f"{key} holds nothing to choose from")
        combined = SelectorUnion(parts) if key == "union" else SelectorIntersection(parts)
        return SelectorDifference(combined, minus) if minus else combined

    def _parts(self, elements: tuple[YamlNode, ...], what: str) -> tuple[tuple[Selector, ...], Selector | None]:
        """The definitions in a list, and that of its one `exclude`."""
        excludes = [node for node in elements if isinstance(node.value, dict) and list(node.children) == ["exclude"]]
        if len(excludes) > 1:
            raise excludes[1].error(f"{what} has more than one exclude", "put all that is excluded in one list")
        parts = tuple(self._definition(node) for node in elements if node not in excludes)
        return parts, self._exclusion(excludes[0]) if excludes else None

    def _exclusion(self, node: YamlNode) -> Selector | None:
        listed = node.get("exclude")
        return None if listed is None else SelectorUnion(tuple(map(self._definition, listed.sequence("exclude"))))

    def _short(self, node: YamlNode) -> Selector:
        """The short form, such as `tag: nightly`."""
        if len(node.children) != 1:
            raise node.error("a definition needs `method` and `value`", "or one `method: value`, a union, …")
        ((method, value),) = node.items()
        return self._term(node, method, value)

    def _method(self, node: YamlNode) -> Selector:
        DEFINITION.check(node)
        term = self._term(node, _require_key(node, "method").text("method"), _require_key(node, "value"))
        minus = self._exclusion(node)
        return SelectorDifference(term, minus) if minus else term

    def _term(self, node: YamlNode, method: str, value: YamlNode) -> Selector:
        if method == "selector":
            return self._resolve_name(value.text("value"), value)
        if hint := unknown_method(method):
            raise node.error(f"unknown method {method!r}", hint)
        values = [
            SelectorTerm(
                text=f"{method}:{text}",
                method=method,
                value=text,
                parents=_flag(node, "parents"),
                parents_depth=_depth(node, "parents_depth"),
                children=_flag(node, "children"),
                children_depth=_depth(node, "children_depth"),
                at=_flag(node, "childrens_parents"),
                indirect=_indirect(node),
            )
            for text in value.texts("value")
        ]
        return values[0] if len(values) == 1 else SelectorUnion(tuple(values))


def _require_key(node: YamlNode, key: str) -> YamlNode:
    child = node.get(key)
    if child is None:
        raise node.error(f"{key} is missing")
    return child


def _flag(node: YamlNode, key: str) -> bool:
    child = node.get(key)
    return child is not None and _boolean(child, key)


def _boolean(node: YamlNode, what: str) -> bool:
    if not isinstance(node.value, bool):
        raise node.error(f"{what} must be true or false, not {node.value!r}")
    return node.value


def _depth(node: YamlNode, key: str) -> int | None:
    child = node.get(key)
    return None if child is None else child.integer(key, 0)


def _indirect(node: YamlNode) -> Indirect | None:
    child = node.get("indirect_selection")
    if child is None:
        return None
    word = child.choice("indirect_selection", INDIRECT)
    return next(mode for mode in _MODES if mode == word)


_MODES: tuple[Indirect, ...] = ("eager", "cautious", "buildable", "empty")
