"""Regular expressions of a project, matched in linear time by RE2. Owns what of their syntax is refused.

What they are matched with comes from events: Python's engine needs hours for some names of thirty characters.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_LACKING = {
    "(?=": "a lookahead", "(?!": "a negative lookahead", "(?<=": "a lookbehind", "(?<!": "a negative lookbehind",
    "(?P=": "a backreference", "(?>": "an atomic group", "(?(": "a condition", "(?#": "a comment",
    **{f"\\{number}": "a backreference" for number in range(1, 10)},
    "++": "a possessive quantifier", "*+": "a possessive quantifier", "?+": "a possessive quantifier",
}  # fmt: skip
"""Syntax of other engines, which no engine of linear time has or this one does not read."""


_PLAIN = re.compile(r"\w*")
"""A name that matches only itself, as most do: the engine is not imported for it."""
_ESCAPED = re.compile(r"(\w|\\[^\w\s\\])*")
"""A name with signs that would mean something else without a backslash."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class PatternError(ValueError):
    """A text that is not a regular expression, or has syntax that is refused; the message says which."""


def compile_pattern(pattern: str) -> None:
    """Raise PatternError where a pattern cannot be used.

    >>> compile_pattern(r"user_(\\d+_?)*")
    >>> compile_pattern("user_(?!old)")
    Traceback (most recent call last):
        ...
    sqlmesh_like.project.reading.patterns.PatternError: it has a negative lookahead, '(?!'
    """
    if not _PLAIN.fullmatch(pattern):
        _compile_pattern(pattern)


def matches_whole(pattern: str, name: str) -> bool:
    """Whether a pattern matches the whole of a name. Raises PatternError.

    >>> matches_whole(r"user_\\d+", "user_0"), matches_whole(r"user_\\d+", "user_0_old")
    (True, False)
    """
    if _PLAIN.fullmatch(pattern):
        return pattern == name
    return _compile_pattern(pattern).fullmatch(_encodable(name)) is not None


def names_of(pattern: str) -> tuple[str, ...]:
    """The names that a declaration means which is meant for one table: its text, also without backslashes.

    >>> names_of(r"public\\.orders"), names_of(r"user_\\d+")
    (('public\\\\.orders', 'public.orders'), ('user_\\\\d+',))
    """
    if "\\" in pattern and _ESCAPED.fullmatch(pattern):
        return pattern, pattern.replace("\\", "")
    return (pattern,)


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which UTF-8 lacks and a name of an event may have."""
    return _SURROGATE.sub("\ufffd", text)


@cache
def _compile_pattern(pattern: str) -> Any:
    import re2  # most projects have no pattern

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(_encodable(pattern), options)
    except re2.error as error:
        for sign in sorted(_LACKING, key=len, reverse=True):
            if sign in pattern.replace("\\\\", ""):
                raise PatternError(f"it has {_LACKING[sign]}, {sign!r}") from None
        text = error.args[0] if error.args else ""
        raise PatternError(text.decode(errors="replace") if isinstance(text, bytes) else str(text)) from None
