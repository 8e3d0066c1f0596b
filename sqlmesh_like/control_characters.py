"""Characters that a terminal interprets instead of showing them. Owns finding and escaping them.

A row may hold what clears a screen, names a window, hides a line or turns its order around: people are shown `\\x1b`.
"""

from __future__ import annotations

import re

_CONTROL = "\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff"
"""C0, C1, marks of direction and of invisible width, halves of a pair."""
_ANY = re.compile(f"[{_CONTROL}]")
_BUT_LINES = re.compile(f"(?![\n\t])[{_CONTROL}]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    r"""A text on one line, with each such sign spelt out.

    >>> print(shown("a\x1b[2Jb\n\u202ec"))
    a\x1b[2Jb\n\u202ec
    """
    return _ANY.sub(_spelt, text)


def shown_lines(text: str) -> str:
    r"""The same for a text of several lines, which stay.

    >>> print(shown_lines("a\x07\nb"))
    a\x07
    b
    """
    return _BUT_LINES.sub(_spelt, text)


def shown_json(text: str) -> str:
    r"""JSON that is the same to whoever reads it, and does nothing to a terminal.

    >>> print(shown_json('["a\x9b", "\u202e"]'))
    ["a\u009b", "\u202e"]
    """
    return _BUT_LINES.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _spelt(sign: re.Match[str]) -> str:
    number = ord(sign[0])
    return _NAMED.get(sign[0]) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")
