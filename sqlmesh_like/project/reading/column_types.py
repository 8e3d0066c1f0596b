"""Types of columns as users write them. Owns Spark's names, and recognizing misspelled and foreign ones."""

from __future__ import annotations

import difflib
import re

_SIMPLE = frozenset(
    "tinyint byte smallint short int integer bigint long float real double decimal dec numeric string varchar char "
    "character binary boolean date timestamp timestamp_ntz timestamp_ltz interval variant void array map struct".split()
)
"""Spark's, by https://spark.apache.org/docs/3.5.0/sql-ref-datatypes.html."""
_OF_OTHERS = frozenset(
    "text datetime number nvarchar nchar varchar2 bpchar clob blob bytea bytes bool int2 int4 int8 int16 int32 int64 "
    "float4 float8 float32 float64 float16 mediumint hugeint uint8 uint16 uint32 uint64 serial bigserial money time "
    "timetz timestamptz timestampntz timestampltz timestamp_tz datetime2 bignumeric bigdecimal json jsonb uuid object "
    "geography geometry super bit varbit year enum set list tuple longtext mediumtext tinytext".split()
)
"""Types that dbt projects for other databases use; they are not reported."""
_WORD = re.compile(r"[a-z_]\w*(?=\s*(?:$|[(<>,]))")
_DECIMAL = re.compile(r"\b(?:decimal|dec|numeric)\s*\(\s*(\d+)")
_MAX_DIGITS = 38
_SPELLING = re.compile(r"[\w\s(),:<>]+", re.ASCII)
_NOT_CAST = frozenset("interval variant void varchar char character".split())
"""Types to which no value of a query is cast: Spark takes a cast to `varchar` for one to `string`."""


def type_fault(text: str) -> tuple[str, str | None] | None:
    """What is wrong with a declared type, and a hint; None if nothing is, or another database may have the type.

    >>> type_fault("timestmp")
    ("there is no type 'timestmp'", "did you mean 'timestamp'?")
    >>> type_fault("array<decimel(10,2)>")
    ("there is no type 'decimel'", "did you mean 'decimal'?")
    >>> type_fault("struct<a: int, b: decimal(10,2)>"), type_fault("int64"), type_fault("geo_hash")
    (None, None, None)
    """
    lower = text.lower()
    if "{{" in lower:
        return None
    if wide := next((digits for digits in _DECIMAL.findall(lower) if int(digits) > _MAX_DIGITS), None):
        return f"a decimal of {wide} digits: Spark's have at most {_MAX_DIGITS}", None
    for word in _WORD.findall(lower):
        if hint := nearest_type(word):
            return f"there is no type {word!r}", hint
    return None


def spark_type_fault(text: str) -> tuple[str, str | None] | None:
    """What is wrong with a type that a query casts to, and a hint; None if it is one of Spark's.

    >>> spark_type_fault("decimal(10,2)"), spark_type_fault("struct<a: int, b: array<date>>")
    (None, None)
    >>> spark_type_fault("int64")
    ("there is no type 'int64' in Spark", 'write bigint, decimal(p,s), string, date, timestamp …')
    >>> spark_type_fault("int) + (1")
    ("'int) + (1' is not a type", None)
    """
    if fault := type_fault(text):
        return fault
    lower = text.lower()
    if not _SPELLING.fullmatch(text) or not _is_balanced(text):
        return f"{text!r} is not a type", None
    if refused := next((word for word in _WORD.findall(lower) if word in _NOT_CAST), None):
        return f"values cannot be cast to {refused}", "write string" if "char" in refused else None
    unknown = next((word for word in _WORD.findall(lower) if word not in _SIMPLE), None)
    if unknown is not None or not _WORD.findall(lower):
        return (
            f"there is no type {unknown or lower!r} in Spark",
            "write bigint, decimal(p,s), string, date, timestamp …",
        )
    return None


def _is_balanced(text: str) -> bool:
    depth = {"(": 0, "<": 0}
    for sign in re.findall("[()<>]", text):
        opening = {")": "(", ">": "<"}.get(sign)
        depth[opening or sign] += -1 if opening else 1
        if depth[opening or sign] < 0:
            return False
    return not any(depth.values())


def nearest_type(word: str) -> str | None:
    """A hint with the type of which a word is a misspelling; None if the word is a type, or similar to none.

    >>> nearest_type("timestmp"), nearest_type("date"), nearest_type("datetime")
    ("did you mean 'timestamp'?", None, None)
    """
    lower = word.lower()
    if lower in _SIMPLE or lower in _OF_OTHERS:
        return None
    close = difflib.get_close_matches(lower, sorted(_SIMPLE), n=1, cutoff=0.8)
    return f"did you mean {close[0]!r}?" if close else None
