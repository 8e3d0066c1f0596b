"""Types of arrays and structs in Spark's short spelling. Owns parsing them; pure text."""

from __future__ import annotations

import re


def element_of(type_: str | None) -> str | None:
    """Type of an array's elements; None for anything else.

    >>> element_of("array<struct<a:int,b:array<int>>>"), element_of("map<int,int>")
    ('struct<a:int,b:array<int>>', None)
    """
    match = re.fullmatch(r"array<(.+)>", type_ or "")
    return match[1] if match else None


def fields_of(type_: str | None) -> dict[str, str]:
    """Types of a struct's fields by name; nothing for anything else, or for names that cannot be told apart.

    >>> fields_of("struct<a:int,b:map<int,decimal(10,2)>>"), fields_of("int")
    ({'a': 'int', 'b': 'map<int,decimal(10,2)>'}, {})
    """
    match = re.fullmatch(r"struct<(.+)>", type_ or "")
    if not match:
        return {}
    parts, depth = [""], 0
    for character in match[1]:
        depth += (character in "<(") - (character in ">)")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    fields = [part.partition(":") for part in parts]
    names = {name.lower() for name, _, _ in fields}
    is_plain = len(names) == len(fields) and all(name and type_ and name.isidentifier() for name, _, type_ in fields)
    return {name: type_ for name, _, type_ in fields} if is_plain else {}
