"""Regular expressions of Java, run by Python's. Owns where both certainly find the same.

Those that find the members of JSON as it is written (`formats.json_text`) begin where the last one ended, which Python
cannot; their work is done by a reader of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache

from sqlmesh_like.cdc.formats.json_text import ELEMENT, MEMBER, name_of_member_pattern
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.in_process.written_json import written_elements, written_members

_LINE_ENDS = re.compile("[\n\r\u0085\u2028\u2029]")
"""Where Java sees the end of a line; Python knows one of them."""
_ANY_CHARACTER = re.compile(r"(?<!\\)(?:\\\\)*(?:\.(?![*+?]*\])|\$)")
_QUOTE = r"\x27"
"""How `sql_text.spark_pattern` writes an apostrophe."""
_GROUP = re.compile(r"\$([0-9])")


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> tuple[re.Pattern[str], bool]:
    """The pattern, and whether the ends of lines matter to it."""
    if r"\G" in pattern:
        raise NotProvenError(f"the pattern {pattern[:40]}")
    try:
        return re.compile(pattern, re.ASCII), bool(_ANY_CHARACTER.search(re.sub(r"\[[^\]]*\]", "", pattern)))
    except re.error as error:
        raise NotProvenError(f"the pattern {pattern[:40]}: {error}") from None


def _for(text: str, pattern: str) -> re.Pattern[str]:
    own, sees_lines = _pattern(pattern)
    if sees_lines and _LINE_ENDS.search(text):
        raise NotProvenError("a pattern over several lines")
    return own


def rlike(text: str | None, pattern: str) -> bool | None:
    return None if text is None else _for(text, pattern).search(text) is not None


def regexp_extract(text: str | None, pattern: str, group: int = 1) -> str | None:
    """The group of the first match; '' where there is none."""
    if text is None:
        return None
    if (name := name_of_member_pattern(pattern.replace(_QUOTE, "'"))) is not None:
        return next((value for known, value in written_members(text) if json.loads(known) == name), "")
    match = _for(text, pattern).search(text)
    return (match[group] or "") if match else ""


def regexp_extract_all(text: str | None, pattern: str, group: int = 1) -> list[str] | None:
    """The group of each match."""
    if text is None:
        return None
    plain = pattern.replace(_QUOTE, "'")
    if plain == MEMBER:
        return [member[group - 1] for member in written_members(text)]
    if plain == ELEMENT:
        return written_elements(text)
    return [match[group] or "" for match in _for(text, pattern).finditer(text)]


def regexp_replace(text: str | None, pattern: str, new: str) -> str | None:
    if text is None:
        return None
    return _for(text, pattern).sub(_template(new), text)


@lru_cache(maxsize=64)
def _template(new: str) -> Callable[[re.Match[str]], str]:
    if "\\" in new:
        raise NotProvenError(f"the replacement {new}")
    return lambda match: _GROUP.sub(lambda group: match[int(group[1])] or "", new)


def split(text: str | None, pattern: str) -> list[str] | None:
    """The parts between the matches; of an empty pattern the characters."""
    if text is None:
        return None
    if pattern == "":
        return list(text) if text else [""]
    own = _for(text, pattern)
    parts, at = [], 0
    for match in own.finditer(text):
        if match.end() == match.start():
            raise NotProvenError("a split at nothing")
        parts.append(text[at : match.start()])
        at = match.end()
    return [*parts, text[at:]]
