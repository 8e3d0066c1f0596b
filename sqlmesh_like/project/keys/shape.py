"""Entries of YAML key by key: their keys, the values that these accept, and the defaults of missing ones.

Owns the declaration and how an entry is checked against it. What is read is plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sqlmesh_like.project.reading.project_warnings import warn
from sqlmesh_like.project.reading.yaml_node import YamlNode

Reader = Callable[[YamlNode, str], object]
"""A value and the key that names it → plain data. Raises ProjectError at its location."""
JsonSchema = Mapping[str, object]
"""JSON Schema, in which a `Shape` is a placeholder for its own schema."""
Others = Literal["refuse", "warn", "take"]
"""What happens to undeclared keys; `take`: they are the project's own, or another tool's."""
TEMPLATE: JsonSchema = {"type": "string", "pattern": r"\{\{|\{%"}
NULL: JsonSchema = {"type": "null"}


@dataclass(frozen=True)
class Form:
    """The values that a key accepts. `words` describe them to users, `schema` to editors; `example` fits any key."""

    read: Reader
    words: str
    schema: JsonSchema
    hint: str = "…"
    is_nested: bool = False  # entries of their own shape, which the loader checks separately
    example: object = None


@dataclass(frozen=True)
class Key:
    """A key: its values, and its default. `help` and `example` are for users."""

    form: Form
    default: object = None
    is_required: bool = False
    help: str = ""
    example: object = None
    instead: str = ""  # of a key of dbt's without effect here: what happens instead

    @property
    def shown(self) -> object:
        """An example of a value; None if there is none."""
        return self.form.example if self.example is None else self.example

    def schema(self) -> JsonSchema:
        """JSON Schema of the value, which may also be null, as if the key were missing, or a template."""
        schemas = [self.form.schema]
        if self.form.schema:
            schemas += [] if takes_any_text(self.form.schema) else [TEMPLATE]
            schemas += [] if self.is_required or takes_null(self.form.schema) else [NULL]
        said = {"description": self.help} if self.help else {}
        shown = {} if self.default is None else {"default": self.default}
        value = schemas[0] if len(schemas) == 1 and not isinstance(schemas[0], Shape) else {"anyOf": schemas}
        return {**said, **value, **shown, **({} if self.shown is None else {"examples": [self.shown]})}


@dataclass(frozen=True)
class Shape:
    """The keys of an entry; `what` names it in messages: `a measure`."""

    what: str
    keys: Mapping[str, Key]
    others: Others = field(default="refuse", kw_only=True)
    help: str = field(default="", kw_only=True)

    @property
    def name(self) -> str:
        """`what` without its article: `measure`."""
        return self.what.removeprefix("a ").removeprefix("an ").removeprefix("the ")

    @property
    def example(self) -> Mapping[str, object]:
        """An entry with what it requires, or with its first key."""
        required = {name: key.shown for name, key in self.keys.items() if key.is_required}
        return required or {name: key.shown for name, key in list(self.keys.items())[:1]}

    def check_keys(self, node: YamlNode) -> None:
        """Raise ProjectError if the node is not a mapping or has a refused key; warn about a key that is not used."""
        node.mapping(self.what)
        if self.others == "refuse":
            node.expect_keys(self.what, self.keys)
        elif self.others == "warn":
            node.ignore_other_keys(self.what, self.keys)
        for name, child in node.items():
            if name in self.keys and (instead := self.keys[name].instead) and child.value not in (None, [], {}):
                warn(child.key_location, f"{name!r} of {self.what} has no effect here", instead, once=True)

    def check(self, node: YamlNode) -> None:
        """Like `check_keys`, and raise ProjectError for a value that its key does not accept."""
        self.check_keys(node)
        for name, child in node.items():
            key = self.keys.get(name)
            if key is not None and child.value is not None and not key.form.is_nested:
                key.form.read(child, name)

    def read(self, node: YamlNode, _key: str = "") -> dict[str, object]:
        """Every key with its value or its default. Raises ProjectError for a key that is unknown, wrong or missing."""
        self.check_keys(node)
        return {name: self.value(node, name) for name in self.keys}

    def value(self, node: YamlNode, name: str) -> object:
        """The value of a key, or its default. Raises ProjectError if it is wrong, or missing and required."""
        key, child = self.keys[name], node.get(name)
        if child is not None:
            return key.form.read(child, name)
        if key.is_required:
            raise node.error(f"{self.what} needs {name!r}", f"add {name}: {key.form.hint}")
        return key.default

    def schema(self) -> JsonSchema:
        """JSON Schema of an entry."""
        required = [name for name, key in self.keys.items() if key.is_required]
        return {
            "type": "object",
            "properties": {name: key.schema() for name, key in self.keys.items()},
            **({"required": required} if required else {}),
            **({} if self.others == "take" else {"additionalProperties": False}),
        }


class NamedShape(Shape):
    """Keys of an entry that may be given by its name alone."""

    def read(self, node: YamlNode, key: str = "") -> dict[str, object]:
        if not isinstance(node.value, str):
            return super().read(node, key)
        return {name: node.value if name == "name" else one.default for name, one in self.keys.items()}

    def schema(self) -> JsonSchema:
        return {"anyOf": [{"type": "string"}, super().schema()]}


def takes_any_text(schema: object) -> bool:
    """Whether a schema accepts any text."""
    if not isinstance(schema, Mapping):
        return False
    types, branches = schema.get("type", ()), schema.get("anyOf", ())
    assert isinstance(branches, list | tuple)
    has_text = types == "string" or (isinstance(types, list) and "string" in types)
    return (has_text and not {"enum", "pattern"} & schema.keys()) or any(map(takes_any_text, branches))


def takes_null(schema: object) -> bool:
    """Whether a schema accepts null by itself."""
    branches = schema.get("anyOf", ()) if isinstance(schema, Mapping) else ()
    assert isinstance(branches, list | tuple)
    return NULL in branches
