"""Spark SQL that takes JSON values out of a text as they are written. Knows no format.

Spark's own functions write a nested value anew: a number with a fraction goes through a double, so 0.10 becomes 0.1 and
12345678901234567.89 becomes 1.2345678901234568E16. Here a regular expression of Java finds where a value begins and
ends. Every repetition in it is possessive: Java runs such a loop without recursion, in one pass over the text.
"""

from __future__ import annotations

import re
from functools import cache

from sqlmesh_like.sql_text import spark_literal, spark_pattern

MAX_JSON_DEPTH = 100
"""Levels of objects and lists in a message or its key: JSON readers recurse for each, so that many overflow a stack."""
STRING = r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
"""A JSON string. Spark's parser also takes apostrophes for quotes."""
_SCALAR = r"""[^\s,:\[\]{}"']++"""


def _brackets_pattern(depth: int) -> str:
    pattern = ""
    for _ in range(depth):
        pattern = rf"""[\[{{](?:[^\[\]{{}}"']++|{STRING}{"|" if pattern else ""}{pattern})*+[\]}}]"""
    return pattern


VALUE = f"(?:{STRING}|{_SCALAR}|{_brackets_pattern(MAX_JSON_DEPTH)})"
"""Any JSON value."""
MEMBER = rf"\G\s*+[{{,]\s*+({STRING})\s*+:\s*+({VALUE})"
"""The next member of an object: its name as it is written, and its value."""
ELEMENT = rf"\G\s*+[\[,]\s*+({VALUE})"
"""The next element of a list."""
_IN_PLACE = rf"""({STRING}|[^\s"']++)|\s++"""
_IS_REWRITTEN = r"""^(?:["\[{]|-0|-?[0-9]+[.eE])"""
_HOLDS_NEGATIVE_ZERO = r""":\s*+-0\s*+[,}]"""


def may_be_rewritten(text: str, message: str = "value") -> str:
    """Spark SQL: whether a value that Spark gives as text may be spelt otherwise in its message; NULL for NULL.

    True for strings that look so, too: it is a cheap test of whether `written_row` is needed. A member that is -0 is
    given as 0, as many texts are: only then the message is looked through.
    """
    is_negative_zero = f"{text} = '0' and {message} rlike {spark_pattern(_HOLDS_NEGATIVE_ZERO)}"
    return f"({text} rlike {spark_pattern(_IS_REWRITTEN)} or {is_negative_zero})"


def member_text(text: str, name: str) -> str:
    """Spark SQL of the value of an object's member as it is written; of several, the last; NULL where there is none."""
    return f"nullif(regexp_extract({text}, {spark_pattern(_member_pattern(name))}, 1), '')"


_CODE = re.compile(r"\\u\(\?i:([0-9a-f]{4})\)")


def name_of_member_pattern(pattern: str) -> str | None:
    """The name that `member_text` looks for by a pattern; None for other patterns.

    >>> name_of_member_pattern(_member_pattern("before-image")), name_of_member_pattern("a+")
    ('before-image', None)
    """
    name = "".join(chr(int(code, 16)) for code in _CODE.findall(pattern))
    return name if name and pattern == _member_pattern(name) else None


@cache
def _member_pattern(name: str) -> str:
    named = rf"[\"']{''.join(map(_spellings, name))}[\"']\s*+:\s*+({VALUE})"
    return rf"^\s*+\{{(?:\s*+(?:{named}|{STRING}\s*+:\s*+{VALUE})\s*+,?+)*+"


def _spellings(char: str) -> str:
    """The ways of writing an ASCII character in a JSON string."""
    return rf"(?:{re.escape(char)}|\\u(?i:{ord(char):04x}))"


def element_texts(text: str) -> str:
    """Spark SQL of the elements of a list as they are written."""
    return f"regexp_extract_all({text}, {spark_pattern(ELEMENT)}, 1)"


def written_row(row: str, *, compact: bool = False) -> str:
    """Spark SQL of an object in which every value but strings and null is a string of what is written for it.

    Reading the result as texts gives each value as it stood. `compact`: without blanks between the parts of values.
    """
    names, values = (f"regexp_extract_all(row_text, {spark_pattern(MEMBER)}, {group})" for group in (1, 2))
    members = f"zip_with({names}, {values}, (member, written) -> concat(member, ':', "
    members += f"{_as_string('written', compact=compact)}))"
    # As a variable of a lambda, the row is taken out of its message once.
    return f"transform(array({row}), row_text -> concat('{{', array_join({members}, ','), '}}'))[0]"


def _as_string(value: str, *, compact: bool) -> str:
    blank = spark_pattern(r"\s")
    in_place = spark_pattern(_IN_PLACE)
    written = f"if({value} rlike {blank}, regexp_replace({value}, {in_place}, '$1'), {value})" if compact else value
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        written = f"replace({written}, {spark_literal(char)}, {spark_literal(escaped)})"
    is_kept = f"left({value}, 1) in ('\"', {spark_literal(chr(39))}) or {value} = 'null'"
    return f"if({is_kept}, {value}, concat('\"', {written}, '\"'))"
