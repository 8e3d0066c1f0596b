"""How deep and how long values of an event may be. Owns the limits; beyond them is a dead letter, or a shorter name.

JSON readers recurse for each level: a text with some hundred levels ends Java with a StackOverflowError.
"""

from __future__ import annotations

import hashlib

from sqlmesh_like.cdc.formats.source_types import sql_literal

MAX_JSON_DEPTH = 100
"""Objects and lists inside each other in a message or its key."""
MAX_PART = 200
"""Signs of a partition's folder; file systems take 255 bytes."""
MAX_NAME = 100
"""Signs of a discovered table's name."""
MAX_EVENT = 32_000_000
"""Bytes of a message, and of its key: what is longer takes the memory that the rest of its batch needs."""
TOO_LONG = f"longer than {MAX_EVENT:,} bytes"
TOO_DEEP = f"JSON nested more than {MAX_JSON_DEPTH} deep"

_ESCAPE = r"\\[\s\S]"
_NO_BRACKET = r"[^\[\]{}]+"
_FEW = 64
"""So few brackets cannot be too deep, and so many are counted in no time."""
_FLAT = 8
"""Levels that are looked for first: schemas have many brackets and few levels."""


def is_short(text: str) -> str:
    """Spark SQL: whether a text has at most `MAX_EVENT` bytes; NULL has."""
    return f"coalesce(octet_length({text}) <= {MAX_EVENT}, true)"


def is_shallow_json(text: str) -> str:
    """Spark SQL: whether a text of JSON is nested no deeper than `MAX_JSON_DEPTH`; NULL is."""
    outside = f"regexp_replace(regexp_replace({text}, {sql_literal(_ESCAPE)}, ''), '\"[^\"]*\"', '')"
    brackets = f"regexp_replace({outside}, {sql_literal(_NO_BRACKET)}, '')"
    few = f"length({text}) - length(translate({text}, {sql_literal('[{')}, '')) <= {_FEW}"
    rest = brackets
    for _ in range(_FLAT):
        rest = f"replace(replace({rest}, '[]', ''), {sql_literal('{}')}, '')"
    step = f"a.d + if(c in ('[', {sql_literal('{')}), 1, -1)"
    deepest = f"aggregate(split({brackets}, ''), named_struct('d', 0, 'm', 0), (a, c) -> named_struct('d', {step},"
    deepest += f" 'm', greatest(a.m, {step})), a -> a.m)"
    return (
        f"case when {text} is null or {few} then true when {rest} = '' then true else {deepest} <= {MAX_JSON_DEPTH} end"
    )


def shortened(text: str, limit: int) -> str:
    """A name of at most this length: of a longer one the beginning and a hash of it all.

    >>> shortened("orders", 10), shortened("x" * 30, 20)
    ('orders', 'xxx_666a596df2cf2181')
    """
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{text[: limit - 17]}_{digest}"


def shortened_sql(safe: str, text: str, limit: int = MAX_PART) -> str:
    """Spark SQL of a folder's name from its `safe` spelling; a hash of the `text` itself keeps long ones apart."""
    return (
        f"if(length({safe}) <= {limit}, {safe}, concat(left({safe}, {limit - 33}), '_', left(sha2({text}, 256), 32)))"
    )
