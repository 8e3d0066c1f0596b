"""What a function returns over arguments of some types. Owns filling a signature in; `table` has the signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlmesh_like.analyze.functions.catalogue import function_named
from sqlmesh_like.analyze.spark_types.coercion import VOID, implicit_cast, widest
from sqlmesh_like.analyze.spark_types.nested_types import element_of, entry_of
from sqlmesh_like.analyze.spark_types.refusal import Refusal

_WIDENED = {"T": True, "U": False, "A": True, "M": True}
"""Variables for the one type that all their arguments are widened to, and whether a text wins there."""
_PART = re.compile(r"\$(\d)(?:\.(element|key|value))?")
_CLASSES = {"number": "a number", "integer": "an integer", "time": "a timestamp", "array": "an array", "map": "a map",
            "struct": "a struct", "interval": "an interval"}  # fmt: skip


def result_type(name: str, types: Sequence[str | None]) -> str | Refusal | None:
    """Type of a function's result over arguments of these types; None where it is not proven.

    >>> result_type("substring", ["binary", "int"]), result_type("coalesce", ["int", "decimal(10,2)"])
    ('binary', 'decimal(12,2)')
    >>> result_type("upper", ["array<int>"])
    Refusal(message='upper() takes string as argument 1, not array<int>')
    """
    function = function_named(name)
    if function is None or function.signature is None:
        return None
    signature = function.signature
    if len(types) < signature.required or (types and signature.parameter(len(types) - 1) is None):
        return Refusal(f"{name}() does not take {len(types)} {'argument' if len(types) == 1 else 'arguments'}")
    arguments: list[str | None] = []
    widened: dict[str, list[str | None]] = {}
    for position, type_ in enumerate(types):
        expected = signature.parameter(position) or "any"
        if expected in _WIDENED:
            widened.setdefault(expected, []).append(type_)
            arguments.append(type_)
            continue
        made = None if type_ is None else implicit_cast(type_, expected)
        if made is None and type_ is not None:
            return Refusal(f"{name}() takes {_describe_expected(expected)} as argument {position + 1}, not {type_}")
        arguments.append(made)
    variables = {variable: common_type(given, text_wins=_WIDENED[variable]) for variable, given in widened.items()}
    for variable, common in variables.items():
        if isinstance(common, Refusal):
            return Refusal(f"{name}() of {common.message}")
        wanted = {"A": "array", "M": "map"}.get(variable)
        if wanted and common is not None and common != VOID and not common.startswith(f"{wanted}<"):
            return Refusal(f"{name}() takes {_CLASSES[wanted]}, not {common}")
    return _fill_result(signature.result, arguments, variables)


def common_type(types: Sequence[str | None], *, text_wins: bool = True) -> str | Refusal | None:
    """The type to which Spark widens values of these types; None where one of them is not proven."""
    known = [type_ for type_ in types if type_ is not None]
    if len(known) != len(types):
        return None
    distinct = list(dict.fromkeys(known))
    return widest(distinct, text_wins=text_wins) or Refusal(f"{' and '.join(distinct)} have no common type")


def _fill_result(
    result: str, arguments: Sequence[str | None], variables: Mapping[str, str | Refusal | None]
) -> str | None:
    """A result with the types of arguments and variables filled in."""
    unknown = False

    def fill(match: re.Match[str]) -> str:
        nonlocal unknown
        number, part = int(match[1]), match[2]
        type_ = arguments[number - 1] if number <= len(arguments) else None
        if part == "element":
            type_ = element_of(type_)
        elif part is not None:
            entry = entry_of(type_)
            type_ = entry[part == "value"] if entry else None
        unknown |= type_ is None
        return str(type_)

    made = _PART.sub(fill, result)
    for variable in _WIDENED:
        if re.search(rf"\b{variable}\b", made):
            type_ = variables.get(variable)
            unknown |= not isinstance(type_, str)
            made = re.sub(rf"\b{variable}\b", str(type_), made)
    return None if unknown else made


def _describe_expected(expected: str) -> str:
    return " or ".join(_CLASSES.get(choice, choice) for choice in expected.removeprefix("=").split("|"))
