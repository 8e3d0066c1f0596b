"""Types of JSON rows as Spark infers them from values. Owns Spark's rules for one value, and for several together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlmesh_like.cdc.in_process.json_values import Fraction, json_value
from sqlmesh_like.cdc.in_process.values import NotProvenError, Value

Inferred = str | Mapping[str, "Inferred"] | list["Inferred"] | None
"""A type of Spark by name, a struct's members, a list's element; None: no value shows one."""


def infer_type(texts: Iterable[str]) -> Mapping[str, Inferred]:
    """The members of JSON objects, sorted by name, without those of which no value shows a type.

    Raises NotProvenError for other texts.
    """
    known: Inferred = {}
    for text in texts:
        value = json_value(text)
        if not isinstance(value, dict):
            raise NotProvenError("a message that is not a JSON object")
        known = _both(known, _of(value))
    result = _without_empty_members(known)
    return result if isinstance(result, dict) else {}


def _of(value: Value) -> Inferred:
    match value:
        case None | "":
            return None
        case bool():
            return "boolean"
        case str():
            return "string"
        case Fraction():
            return "double"
        case int() if -(2**63) <= value < 2**63:
            return "bigint"
        case dict():
            return {name: _of(each) for name, each in value.items()}
        case list():
            element: Inferred = None
            for each in value:
                element = _both(element, _of(each))
            return [element]
    raise NotProvenError("a whole number of more than 64 bits in JSON")


def _both(left: Inferred, right: Inferred) -> Inferred:
    """The type that holds values of both; of types that none holds, text."""
    if left is None or right is None or left == right:
        return right if left is None else left
    if isinstance(left, dict) and isinstance(right, dict):
        return {name: _both(left.get(name), right.get(name)) for name in {**left, **right}}
    if isinstance(left, list) and isinstance(right, list):
        return [_both(left[0], right[0])]
    return "double" if {str(left), str(right)} == {"bigint", "double"} else "string"


def _without_empty_members(kind: Inferred) -> Inferred:
    """The type without members that show none, which Spark drops (`dropFieldIfAllNull`); None: nothing is left."""
    if isinstance(kind, dict):
        members = {
            name: shown for name, each in sorted(kind.items()) if (shown := _without_empty_members(each)) is not None
        }
        return members or None
    if isinstance(kind, list):
        element = _without_empty_members(kind[0])
        return None if element is None else [element]
    return kind
