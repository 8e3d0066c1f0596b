"""YAML (and TOML) values with their position. Owns safe parsing and typed access, not what keys mean.

A `YamlNode` is a value with its location and, for mappings and lists, its children. Accessors check the type and raise
`ProjectError` at the value's file, line and column.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from sqlmesh_like.errors import Location, ProjectError, nearest
from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.yaml_errors import split_types, yaml_fault

_Marked = yaml.nodes.Node
_Fast = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class YamlNode:
    """One value. `location` is where it starts, `key_location` where the key that names it starts."""

    value: object
    location: Location
    key_location: Location
    children: Mapping[str, YamlNode] = field(default_factory=dict)
    elements: tuple[YamlNode, ...] = ()
    is_private: bool = False
    """The value may be a secret: no message repeats it."""

    def get(self, key: str) -> YamlNode | None:
        """The child under this key; None if it is absent or written as null."""
        child = self.children.get(key)
        return None if child is None or child.value is None else child

    def text_of(self, key: str) -> str | None:
        """The text under a key, or None."""
        child = self.get(key)
        return None if child is None else child.text(key)

    def texts_of(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """The texts under a key; a single text counts as a list of one."""
        child = self.get(key)
        return default if child is None else child.texts(key)

    def elements_of(self, key: str) -> tuple[YamlNode, ...]:
        """The elements of the list under a key; none without it. Raises ProjectError if it is not a list."""
        child = self.get(key)
        return () if child is None else child.sequence(key)

    def mapping_of(self, key: str) -> YamlNode:
        """The mapping under a key; an empty one without it. Raises ProjectError if it is not a mapping."""
        child = self.get(key)
        return YamlNode({}, self.location, self.key_location) if child is None else child.mapping(key)

    def items(self) -> Iterator[tuple[str, YamlNode]]:
        return iter(self.children.items())

    def error(self, message: str, hint: str | None = None) -> ProjectError:
        """An error at this value's key."""
        return ProjectError(message, location=self.key_location, hint=hint)

    def mapping(self, what: str) -> YamlNode:
        """The node itself. Raises ProjectError if it is not a mapping."""
        if not isinstance(self.value, dict):
            raise self.error(f"{what} must be a mapping of keys to values, not {self._kind()}")
        return self

    def sequence(self, what: str) -> tuple[YamlNode, ...]:
        """Its elements. Raises ProjectError if it is not a list."""
        if not isinstance(self.value, list):
            hint = "begin each entry with `- `" if isinstance(self.value, dict) else None
            raise self.error(f"{what} must be a list, not {self._kind()}", hint)
        return self.elements

    def text(self, what: str) -> str:
        """Its text; numbers are accepted as they are written. Raises ProjectError for anything else."""
        if isinstance(self.value, str):
            return self.value
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            return str(self.value)
        hint = "put it in quotes" if isinstance(self.value, bool | datetime.date) else None
        raise self.error(f"{what} must be text, not {self._kind()}", hint)

    def texts(self, what: str) -> tuple[str, ...]:
        """A list of texts; a single text counts as a list of one."""
        if isinstance(self.value, list):
            return tuple(element.text(what) for element in self.elements)
        return (self.text(what),)

    def integer(self, what: str, minimum: int = 1) -> int:
        """A whole number. Raises ProjectError for anything else, and for one below the minimum."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < minimum:
            raise self.error(f"{what} must be a whole number of at least {minimum}, not {self._kind(repr)}")
        return self.value

    def flag(self, what: str) -> bool:
        """true or false. Raises ProjectError for anything else."""
        if not isinstance(self.value, bool):
            raise self.error(f"{what} must be true or false, not {self._kind()}")
        return self.value

    def choice(self, what: str, allowed: Iterable[str]) -> str:
        """One of the allowed words. Raises ProjectError naming them all."""
        word, words = self.text(what), tuple(allowed)
        if word not in words:
            must = f"must be one of {', '.join(words)}"
            shown = must if self.is_private else f"is {word!r}; it {must}"
            raise self.error(f"{what} {shown}", nearest(word, words))
        return word

    def settings(self, what: str) -> dict[str, str]:
        """A mapping of keys to scalars, as text in the way Spark and Hudi spell it (`true`, `42`)."""
        return {key: node.scalar(f"{what}.{key}") for key, node in self.mapping(what).items()}

    def scalar(self, what: str) -> str:
        """A text, number or boolean as text."""
        if isinstance(self.value, bool):
            return "true" if self.value else "false"
        return self.text(what)

    def private(self) -> YamlNode:
        """The same node, whose values no message repeats."""
        children = {key: child.private() for key, child in self.items()}
        elements = tuple(element.private() for element in self.elements)
        return replace(self, children=children, elements=elements, is_private=True)

    def _kind(self, shown: Callable[[object], str] | None = None) -> str:
        if self.is_private:
            return _KINDS.get(type(self.value), "another value")
        return (shown or _kind)(self.value)

    def expect_keys(self, what: str, allowed: Iterable[str]) -> None:
        """Raise ProjectError at the first key that is not allowed, with the nearest one."""
        words = tuple(allowed)
        for key, node in self.items():
            if key not in words:
                hint = nearest(key, words) or f"known keys: {', '.join(words)}"
                shown = key.partition(":")[0] if self.is_private else key  # `password:word` is one key
                raise node.error(f"unknown key {shown!r} in {what}", hint)

    def ignore_other_keys(self, what: str, known: Iterable[str]) -> None:
        """Warn about each key that is not known, with the nearest one: dbt accepts users' own keys here."""
        words = tuple(known)
        for key, node in self.items():
            if key not in words:
                warn(node.key_location, f"unknown key {key!r} in {what} is ignored", nearest(key, words))


_KINDS: Mapping[type, str] = {
    type(None): "empty", bool: "a boolean", dict: "a mapping", list: "a list", str: "a text", int: "a number",
    float: "a number",
}  # fmt: skip


def _kind(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return f"the boolean {str(value).lower()}"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return f"the text {value!r}"
        case _:
            return repr(value)


def parse_yaml(text: str, path: str) -> YamlNode:
    """The single document of a YAML text; an empty one is an empty mapping.

    If a key occurs twice, the last value counts, with a warning. Raises ProjectError with file, line and column for
    invalid YAML and values that contain themselves.
    """
    try:
        _require_shallow(text, path)
        return _parse_with(text, path, _Fast)
    except (yaml.YAMLError, UnicodeEncodeError):  # from libyaml: Python's parser has better messages and positions
        return _parse_with_python(text, path)
    except RecursionError as error:
        raise ProjectError("invalid YAML: values are nested too deep", location=Location(path)) from error


MAX_YAML_DEPTH = 100
"""Levels of nested mappings and lists."""
MAX_INTEGER_BITS = 10_000
"""Python prints no number of more than 4,300 digits, which are 14,284 bits."""
MAX_YAML_VALUES = 1_000_000
"""Values of a file with each alias expanded."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAYBE_DEEP = re.compile(r"(?:[-?:]\s+){50}|^[ \t]{100}", re.MULTILINE)


def _require_shallow(text: str, path: str) -> None:
    """Raise ProjectError for values nested too deep: the composer in C would overflow its stack and end the process."""
    if text.count("[") + text.count("{") < MAX_YAML_DEPTH and not _MAYBE_DEEP.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Fast):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                mark = event.start_mark
                place = Location(path) if mark is None else Location(path, mark.line + 1, mark.column + 1)
                raise ProjectError(f"invalid YAML: values are nested more than {MAX_YAML_DEPTH} deep", location=place)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _parse_with_python(text: str, path: str) -> YamlNode:
    try:
        return _parse_with(text, path, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        message, place = yaml_fault(error, text, path)
        raise ProjectError(f"invalid YAML: {message}", location=place) from error
    except yaml.reader.ReaderError as error:
        message = f"invalid YAML: character {error.character!r} is not allowed"
        raise ProjectError(message, location=Location.at(path, text, error.position)) from error


def _parse_with(text: str, path: str, kind: Any) -> YamlNode:
    loader = kind(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return YamlNode({}, Location(path, 1, 1), Location(path, 1, 1))
        return _Converter(loader, path).convert(root)
    finally:
        loader.dispose()


def _children_of(node: _Marked) -> Iterator[_Marked]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from (key, value)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


class _Converter:
    """Turns PyYAML's node graph into values with locations. Aliases share one value, so that they cost no memory."""

    def __init__(self, loader: yaml.SafeLoader, path: str) -> None:
        self._loader = loader
        self._path = path
        self._done: dict[int, YamlNode] = {}
        self._open: set[int] = set()
        self._sizes: dict[int, int] = {}
        self._has_aliases = False

    def convert(self, node: _Marked, key: _Marked | None = None) -> YamlNode:
        here = self._at(node)
        if id(node) in self._open:
            raise ProjectError("invalid YAML: this value contains itself", location=here)
        if id(node) not in self._done:
            self._open.add(id(node))
            self._done[id(node)] = self._build(node, here)
            self._open.remove(id(node))
            self._sizes[id(node)] = size = 1 + sum(self._sizes.get(id(child), 1) for child in _children_of(node))
            if size > MAX_YAML_VALUES:
                what = "with its aliases resolved, this" if self._has_aliases else "this"
                raise ProjectError(f"invalid YAML: {what} is more than {MAX_YAML_VALUES:,} values", location=here)
        else:
            self._has_aliases = True
        built = self._done[id(node)]
        place = here if key is None else self._at(key)
        return YamlNode(built.value, built.location, place, built.children, built.elements)

    def _build(self, node: _Marked, here: Location) -> YamlNode:
        if isinstance(node, yaml.MappingNode):
            children = self._children(node)
            return YamlNode({key: child.value for key, child in children.items()}, here, here, children)
        if isinstance(node, yaml.SequenceNode):
            elements = tuple(self.convert(element) for element in node.value)
            return YamlNode([element.value for element in elements], here, here, elements=elements)
        return YamlNode(self._scalar(node, here), here, here)

    def _scalar(self, node: _Marked, here: Location) -> object:
        try:
            value: object = self._loader.construct_object(node)
        except ValueError as error:  # a date such as 2024-02-31
            raise ProjectError(f"invalid YAML: {node.value[:40]!r}: {str(error)[:100]}", location=here) from error
        except (ArithmeticError, LookupError, AttributeError, TypeError) as error:  # PyYAML on `!!bool x`, on 1:1:…:1.0
            kind = node.tag.rpartition(":")[2]
            raise ProjectError(f"invalid YAML: {node.value[:40]!r} cannot be a {kind}", location=here) from error
        if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
            raise ProjectError(f"invalid YAML: the number {node.value[:40]}… is too large", location=here)
        self._require_whole(value, here)
        return value

    def _require_whole(self, value: object, here: Location) -> None:
        """Raise ProjectError for `"\\ud800"`, which no file, path or output can have; libyaml refuses it as well."""
        if isinstance(value, str) and not value.isascii() and (half := _SURROGATE.search(value)):
            message = f"invalid YAML: \\u{ord(half[0]):04x} is half of a character"
            raise ProjectError(message, location=here)

    def _children(self, node: yaml.MappingNode) -> dict[str, YamlNode]:
        own: dict[str, YamlNode] = {}
        merged: dict[str, YamlNode] = {}
        for whole, value in split_types(node):
            message = f"the comma splits `{whole}` in two"
            raise ProjectError(message, location=self._at(value), hint=f"in braces it needs quotes: '{whole}'")
        for key, value in node.value:
            if isinstance(key, yaml.MappingNode) and node.flow_style:
                raise ProjectError("invalid YAML: a text that begins with {{ needs quotes", location=self._at(node))
            if not isinstance(key, yaml.ScalarNode):
                raise ProjectError("invalid YAML: a key must be plain text", location=self._at(key))
            self._require_whole(key.value, self._at(key))
            if key.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merge_mappings(value), **merged}
            else:
                if key.value in own:  # as in dbt the last one counts
                    warn(self._at(key), f"key {key.value!r} occurs twice: the value before this one is ignored")
                own[key.value] = self.convert(value, key)
        return {**merged, **own}

    def _merge_mappings(self, value: _Marked) -> Mapping[str, YamlNode]:
        nodes = value.value if isinstance(value, yaml.SequenceNode) else [value]
        merged: dict[str, YamlNode] = {}
        for node in reversed(nodes):
            merged.update(self.convert(node).mapping("a merged value").children)
        return merged

    def _at(self, node: _Marked) -> Location:
        return Location(self._path, node.start_mark.line + 1, node.start_mark.column + 1)


def parse_toml(text: str, path: str) -> YamlNode:
    """A TOML document as nodes; the location of a key is the first line that assigns it or is its header.

    Raises ProjectError for invalid TOML.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+), column (\d+)", str(error))
        place = Location(path, int(match[1]), int(match[2])) if match else Location(path)
        raise ProjectError(f"invalid TOML: {error}", location=place) from error
    except (RecursionError, ValueError) as error:  # deeply nested lists, and numbers of thousands of digits
        raise ProjectError(f"invalid TOML: {str(error)[:100]}", location=Location(path)) from error
    return plain_node(data, Location(path, 1, 1), text)


def plain_node(value: object, place: Location, text: str = "") -> YamlNode:
    """A node of plain Python values; keys are looked up in `text` for their line and column."""
    if isinstance(value, dict):
        children = {str(key): plain_node(child, _find(str(key), place, text), text) for key, child in value.items()}
        return YamlNode({key: child.value for key, child in children.items()}, place, place, children)
    if isinstance(value, list):
        elements = tuple(plain_node(element, place, text) for element in value)
        return YamlNode([element.value for element in elements], place, place, elements=elements)
    return YamlNode(value, place, place)


def _find(key: str, parent: Location, text: str) -> Location:
    start = 0  # of the parent's line
    for _ in range((parent.line or 1) - 1):
        start = text.find("\n", start) + 1
    pattern = re.compile(rf"(?<![\w+-])(\"?){re.escape(key)}\1(?=\s*[=.\]])")
    match = pattern.search(text, start)
    return parent if match is None else Location.at(parent.path, text, match.start())
