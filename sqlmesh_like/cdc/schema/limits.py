"""Limits of nesting and length. Owns them; events beyond them become dead letters, and names of folders are shortened.

JSON readers recurse for each level: a few hundred levels cause a StackOverflowError in Java.
"""

from __future__ import annotations

from sqlmesh_like.cdc.formats.json_text import MAX_JSON_DEPTH
from sqlmesh_like.cdc.formats.source_types import sql_literal

MAX_PART = 200
"""Characters of a partition's folder; file systems allow 255 bytes."""
MAX_NAME = 100
"""Characters of a discovered table's name."""
MAX_EVENT = 32_000_000
"""Bytes of a message, and of its key: longer ones would use the memory that the rest of the batch needs."""
TOO_LONG = f"longer than {MAX_EVENT:,} bytes"
TOO_DEEP = f"JSON nested more than {MAX_JSON_DEPTH} deep"

_ESCAPE = r"\\[\s\S]"
_NO_BRACKET = r"[^\[\]{}]+"
_FEW = 64
"""A text with so few opening brackets cannot be too deep; counting them is cheap."""


def _flat(levels: int) -> str:
    """A regular expression of brackets of so few levels; repetitions are possessive, so that Java does not recurse."""
    pattern = ""
    for _ in range(levels):
        pattern = rf"(?:[\[{{]{pattern}[\]}}])*+"
    return f"^{pattern}$"


_IS_FLAT = _flat(8)
"""Tried first, which is cheaper: schemas have many brackets but few levels."""


def is_short(text: str) -> str:
    """Spark SQL: whether a text has at most `MAX_EVENT` bytes; true for NULL."""
    return f"coalesce(octet_length({text}) <= {MAX_EVENT}, true)"


def is_shallow_json(text: str) -> str:
    """Spark SQL: whether a JSON text is nested no deeper than `MAX_JSON_DEPTH`; true for NULL."""
    outside = f"regexp_replace(regexp_replace({text}, {sql_literal(_ESCAPE)}, ''), '\"[^\"]*\"', '')"
    brackets = f"regexp_replace({outside}, {sql_literal(_NO_BRACKET)}, '')"
    few = f"length({text}) - length(translate({text}, {sql_literal('[{')}, '')) <= {_FEW}"
    step = f"a.d + if(c in ('[', {sql_literal('{')}), 1, -1)"
    deepest = f"aggregate(split({brackets}, ''), named_struct('d', 0, 'm', 0), (a, c) -> named_struct('d', {step},"
    deepest += f" 'm', greatest(a.m, {step})), a -> a.m)"
    rest = f"when {brackets} rlike {sql_literal(_IS_FLAT)} then true else {deepest} <= {MAX_JSON_DEPTH}"
    return f"case when {text} is null or {few} then true {rest} end"


def shortened_sql(safe: str, text: str, limit: int = MAX_PART) -> str:
    """Spark SQL of a folder's name from its `safe` spelling; a hash of the original `text` keeps long ones distinct."""
    return (
        f"if(length({safe}) <= {limit}, {safe}, concat(left({safe}, {limit - 33}), '_', left(sha2({text}, 256), 32)))"
    )
