"""Types of arrays, maps and structs in Spark's short spelling. Owns parsing them; pure text."""

from __future__ import annotations

import re

from sqlmesh_like.analyze.spark_types.type_names import is_atomic, normalize


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


def type_of_schema(text: str) -> str | None:
    """The type that a schema in DDL means, as FROM_JSON takes it: a type, or the columns of a struct; None if unsure.

    >>> type_of_schema("a INT, b array<struct<C: Decimal(10, 2)>>"), type_of_schema("map<string,int>")
    ('struct<a:int,b:array<struct<C:decimal(10,2)>>>', 'map<string,int>')
    >>> type_of_schema("a INT NOT NULL"), type_of_schema("int")
    (None, None)
    """
    whole = _type_in(text) if "<" in text else None
    return whole or _struct_of(text)


def _type_in(text: str) -> str | None:
    text = text.strip()
    if match := re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.IGNORECASE | re.DOTALL):
        kind = match[1].lower()
        if kind == "struct":
            return _struct_of(match[2])
        types = [_type_in(part) for part in _parts(match[2])]
        known = [type_ for type_ in types if type_ is not None]
        return f"{kind}<{','.join(known)}>" if len(known) == len(types) == (1 if kind == "array" else 2) else None
    short = normalize(text)
    is_text_of_length = re.match(r"(var)?char", text, re.IGNORECASE)
    return short if is_atomic(short) and not is_text_of_length and not short.startswith(("interval", "void")) else None


def _struct_of(text: str) -> str | None:
    fields = [re.fullmatch(r"\s*(\w+)(?:\s*:\s*|\s+)(.+)", part, re.DOTALL) for part in _parts(text)]
    types = [_type_in(field[2]) if field else None for field in fields]
    named = [f"{field[1]}:{type_}" for field, type_ in zip(fields, types, strict=True) if field and type_]
    return f"struct<{','.join(named)}>" if len(named) == len(fields) else None


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
