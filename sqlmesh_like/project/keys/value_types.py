"""The values that keys accept: how each is read, its description and its JSON Schema."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.keys.shape import Form, JsonSchema, Key, NamedShape, Reader, Shape
from sqlmesh_like.project.reading.column_types import type_fault
from sqlmesh_like.project.reading.yaml_node import YamlNode

GRANULARITIES = (
    *("nanosecond", "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month", "quarter"),
    "year",
)
DURATION = re.compile(r"\d+ (?:second|minute|hour)s?")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
TEXT: JsonSchema = {"type": ["string", "number"]}
_TEXTS: JsonSchema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
_OBJECT: JsonSchema = {"type": "object"}
_SCALARS: JsonSchema = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}


def seconds_of(duration: str) -> int:
    """The seconds that a duration is.

    >>> seconds_of("5 seconds"), seconds_of("1 hour")
    (5, 3600)
    """
    count, unit = duration.split()
    return int(count) * _SECONDS[unit.removesuffix("s")]


def _whole_number(node: YamlNode, key: str) -> int:
    if isinstance(node.value, bool) or not isinstance(node.value, int):
        raise node.error(f"{key} must be a whole number, not {node.value!r}")
    return node.value


def _number(node: YamlNode, key: str) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.error(f"{key} must be a number, not {node.value!r}")
    return node.value


def _duration(node: YamlNode, key: str) -> str:
    if not DURATION.fullmatch(node.text(key)):
        raise node.error(f"{key} must be a number and a unit", "write it as: 60 seconds")
    return node.text(key)


def _percent(node: YamlNode, key: str) -> float:
    share = _number(node, key)
    if not 0 < share <= 100:
        raise node.error(f"{key} is {share:g}; it must be more than 0 and at most 100", "per cent of the rows")
    return share


def _window(node: YamlNode, key: str) -> object:
    match = re.fullmatch(r"(\d+) (\S+)", node.text(key).lower())
    if match is None:
        raise node.error(f"{key} is {node.text(key)!r}; it must be a count and a granularity", f"write {key}: 7 days")
    singular = match[2].removesuffix("s")
    return {"count": int(match[1]), "granularity": singular if singular in GRANULARITIES else match[2]}


def _data_type(node: YamlNode, key: str) -> str:
    text_ = node.text(key)
    fault = type_fault(text_)
    if fault is not None:
        raise ProjectError(fault[0], location=node.location, hint=fault[1])
    return text_


text = Form(lambda node, key: node.text(key), "text", TEXT, example="orders")
texts = Form(lambda node, key: list(node.texts(key)), "text or list of texts", _TEXTS, example=["orders"])
list_of_texts = Form(
    lambda node, key: [element.text(key) for element in node.sequence(key)],
    "list of texts",
    {"type": "array", "items": TEXT},
    example=["orders"],
)
flag = Form(lambda node, key: node.flag(key), "true or false", {"type": "boolean"}, example=True)
duration = Form(_duration, "number and unit", {"type": "string", "pattern": f"^{DURATION.pattern}$"})
percent = Form(
    _percent, "number up to 100", {"type": "number", "exclusiveMinimum": 0, "maximum": 100}, "up to 100", example=1
)
anything = Form(lambda node, _key: node.value, "anything", {}, example="…")
"""Any value, unchanged."""


def unchecked_value(words: str, example: object) -> Form:
    """A value that is not checked; `words` describe what it is meant to be."""
    return Form(lambda node, _key: node.value, words, {}, example=example)


def without_effect(words: str, example: object, instead: str) -> Key:
    """A key of dbt's that is accepted, and said to change nothing here: `instead` says what happens."""
    return Key(unchecked_value(words, example), help=f"dbt's; no effect here: {instead}.", instead=instead)


NO_EFFECT_ON_QUOTES = without_effect("mapping", {"identifier": True}, "names are quoted where they need it")
NO_CONSTRAINTS = without_effect(
    "list of constraints",
    [{"type": "check", "expression": "amount > 0"}],
    "constraints are not enforced; write data tests",
)
expression = Form(
    lambda node, _key: str(node.value), "SQL", {"type": ["string", "number", "boolean"]}, example="amount * 2"
)
"""SQL, which may be as short as `1` or `true`."""
whole_number = Form(_whole_number, "whole number", {"type": "integer"}, example=10)
number = Form(_number, "number", {"type": "number"}, example=0.5)
plain_mapping = Form(lambda node, key: node.mapping(key).value, "mapping", _OBJECT, example={"owner": "sales"})
"""A mapping, unchanged."""
settings = Form(lambda node, key: node.settings(key), "mapping of texts, numbers and booleans", _SCALARS)
meta_alone = Form(
    lambda node, key: {"meta": node.mapping(key).mapping_of("meta").value},
    "mapping", {"type": "object", "properties": {"meta": _OBJECT}}, example={"meta": {"owner": "sales"}},
)  # fmt: skip
"""The `config:` of a part of an entry, of which only `meta` is used."""
filters = Form(
    lambda node, key: {"where_filters": [{"where_sql_template": text} for text in node.texts(key)]},
    "text or list of texts", _TEXTS, example="{{ Dimension('order__is_big') }}",
)  # fmt: skip
"""One filter or several: templates that a query of metrics would render. They are not rendered here."""
window = Form(_window, "count and granularity", {"type": "string", "pattern": r"^\d+ \S+$"}, example="7 days")
"""`7 days` → its count and granularity, in the singular if it is a standard one."""
data_type = Form(_data_type, "type of Spark SQL", {"type": "string"})


def one_of(*words: str) -> Form:
    """One of these words, in any case."""
    read: Reader = lambda node, key: replace(node, value=node.text(key).lower()).choice(key, words)  # noqa: E731
    anyhow = {"type": "string", "pattern": rf"^(?:{'|'.join(map(_any_case, words))})$"}
    return Form(
        read, _words(words), {"anyOf": [{"enum": list(words)}, anyhow]}, f"one of {', '.join(words)}", example=words[0]
    )


def choice(*words: str) -> Form:
    """One of these words as they are."""
    read: Reader = lambda node, key: node.choice(key, words)  # noqa: E731
    return Form(read, _words(words), {"enum": list(words)}, f"one of {', '.join(words)}", example=words[0])


def count(minimum: int = 1) -> Form:
    """A whole number of at least this."""
    read: Reader = lambda node, key: node.integer(key, minimum)  # noqa: E731
    return Form(
        read, f"whole number of at least {minimum}", {"type": "integer", "minimum": minimum}, example=max(minimum, 1)
    )


def entry(shape: Shape) -> Form:
    """One entry of a shape."""
    words = f"text or {shape.name}" if isinstance(shape, NamedShape) else shape.name
    return Form(shape.read, words, _as_schema(shape), is_nested=True, example=shape.example)


def each(shape: Shape) -> Form:
    """A list of entries of one shape."""
    read: Reader = lambda node, key: [shape.read(element) for element in node.sequence(key)]  # noqa: E731
    schema: JsonSchema = {"type": "array", "items": shape}
    return Form(read, f"list: {shape.name}", schema, is_nested=True, example=[shape.example])


def by_name(shape: Shape) -> Form:
    """Entries of one shape, each under its name."""
    read: Reader = lambda node, key: {name: shape.read(child) for name, child in node.mapping(key).items()}  # noqa: E731
    return Form(
        read, f"by name: {shape.name}", {"type": "object", "additionalProperties": _as_schema(shape)}, is_nested=True
    )


def custom(words: str, *schemas: object) -> Form:
    """A value of any of these schemas, which the loader reads separately."""
    return Form(lambda node, _key: node.value, words, {"anyOf": list(schemas)}, is_nested=True)


def _as_schema(shape: Shape) -> JsonSchema:
    return {"anyOf": [shape]}


def _words(words: tuple[str, ...]) -> str:
    return " | ".join(f"`{word}`" for word in words)


def _any_case(word: str) -> str:
    """A pattern of the word in any case, without flags, since JSON Schema has none.

    >>> _any_case("or_b")
    '[oO][rR]_[bB]'
    """
    return "".join(f"[{letter}{letter.upper()}]" if letter.isalpha() else re.escape(letter) for letter in word)


any_granularity = one_of(*GRANULARITIES)
