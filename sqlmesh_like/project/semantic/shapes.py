"""Entries of YAML key by key: which keys one has, what values they take, and what stands for those that it lacks.

As in dbt a key that is not known is an error here. What is read is plain data, in the shape of `manifest.json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlmesh_like.project.reading.yaml_node import YamlNode

Reader = Callable[[YamlNode, str], object]
"""A value and the key that names it → plain data. Raises ProjectError at its place."""
GRANULARITIES = (
    *("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter"),
    "year",
)


@dataclass(frozen=True)
class Key:
    """How a key is read, and its value where it is not there."""

    read: Reader
    default: object = None
    is_required: bool = False


@dataclass(frozen=True)
class Shape:
    """The keys of an entry; `what` names it in messages: `a measure`."""

    what: str
    keys: Mapping[str, Key]

    def read(self, node: YamlNode, _key: str = "") -> dict[str, object]:
        """Every key with its value or its default. Raises ProjectError for a key that is unknown, wrong or missing."""
        node.mapping(self.what).expect_keys(self.what, self.keys)
        return {name: self._value(node, name, key) for name, key in self.keys.items()}

    def _value(self, node: YamlNode, name: str, key: Key) -> object:
        child = node.get(name)
        if child is not None:
            return key.read(child, name)
        if key.is_required:
            raise node.error(f"{self.what} needs {name!r}", f"add {name}: …")
        return key.default


class NamedShape(Shape):
    """Keys of an entry for which a name alone may stand."""

    def read(self, node: YamlNode, key: str = "") -> dict[str, object]:
        if not isinstance(node.value, str):
            return super().read(node, key)
        return {name: node.value if name == "name" else one.default for name, one in self.keys.items()}


def text(node: YamlNode, key: str) -> str:
    return node.text(key)


def texts(node: YamlNode, key: str) -> list[str]:
    return list(node.texts(key))


def flag(node: YamlNode, key: str) -> bool:
    return node.flag(key)


def expression(node: YamlNode, _key: str) -> str:
    """SQL, which may be as short as `1` or `true`."""
    return str(node.value)


def whole_number(node: YamlNode, key: str) -> int:
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        raise node.error(f"{key} must be a whole number, not {node.value!r}")
    return node.value


def number(node: YamlNode, key: str) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.error(f"{key} must be a number, not {node.value!r}")
    return node.value


def plain(node: YamlNode, key: str) -> object:
    """A mapping as it stands."""
    return node.mapping(key).value


def one_of(*words: str) -> Reader:
    """One of these words, in whatever case."""
    return lambda node, key: replace(node, value=node.text(key).lower()).choice(key, words)


def each(shape: Shape) -> Reader:
    """A list of entries of one shape."""
    return lambda node, key: [shape.read(element) for element in node.sequence(key)]


def meta_alone(node: YamlNode, key: str) -> object:
    """The `config:` of a part of an entry, of which `meta` is all that counts."""
    meta = node.mapping(key).get("meta")
    return {"meta": {} if meta is None else meta.mapping("meta").value}


def filters(node: YamlNode, key: str) -> object:
    """One filter or several. They are templates that a query of metrics would render: nothing here does."""
    return {"where_filters": [{"where_sql_template": filter_} for filter_ in node.texts(key)]}


def window(node: YamlNode, key: str) -> object:
    """`7 days` → its count and granularity, in the singular where it is a standard one."""
    match = re.fullmatch(r"(\d+) (\S+)", node.text(key).lower())
    if match is None:
        raise node.error(f"{key} is {node.text(key)!r}; it must be a count and a granularity", f"write {key}: 7 days")
    singular = match[2].removesuffix("s")
    return {"count": int(match[1]), "granularity": singular if singular in GRANULARITIES else match[2]}
