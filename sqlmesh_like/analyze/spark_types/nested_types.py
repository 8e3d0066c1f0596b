"""Types of arrays, maps and structs in Spark's short spelling. Owns parsing them; pure text."""

from __future__ import annotations

import re


def element_of(type_: str | None) -> str | None:
    """Type of an array's elements; None for anything else.

    >>> element_of("array<struct<a:int,b:array<int>>>"), element_of("map<int,int>")
    ('struct<a:int,b:array<int>>', None)
    """
    match = re.fullmatch(r"array<(.+)>", type_ or "")
    return match[1] if match else None


def entry_of(type_: str | None) -> tuple[str, str] | None:
    """Types of a map's keys and values; None for anything else.

    >>> entry_of("map<string,map<int,int>>"), entry_of("array<int>")
    (('string', 'map<int,int>'), None)
    """
    match = re.fullmatch(r"map<(.+)>", type_ or "")
    parts = _parts(match[1]) if match else []
    return (parts[0], parts[1]) if len(parts) == 2 else None


def typed_fields_of(type_: str | None) -> list[tuple[str, str]]:
    """Names and types of a struct's fields; nothing for anything else, or for names that are not plain.

    >>> typed_fields_of("struct<a:int,b:map<int,decimal(10,2)>>")
    [('a', 'int'), ('b', 'map<int,decimal(10,2)>')]
    """
    match = re.fullmatch(r"struct<(.+)>", type_ or "")
    fields = [part.partition(":") for part in _parts(match[1])] if match else []
    return [(n, t) for n, _, t in fields] if all(n.isidentifier() and t for n, _, t in fields) else []


def fields_of(type_: str | None) -> dict[str, str]:
    """Types of a struct's fields by name; nothing for anything else, or for names that cannot be told apart.

    >>> fields_of("struct<a:int,b:map<int,decimal(10,2)>>"), fields_of("int")
    ({'a': 'int', 'b': 'map<int,decimal(10,2)>'}, {})
    """
    fields = typed_fields_of(type_)
    return dict(fields) if len({name.lower() for name, _ in fields}) == len(fields) else {}


def _parts(text: str) -> list[str]:
    """The text at its commas outside brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts
