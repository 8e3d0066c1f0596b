"""Characters that a terminal interprets instead of showing them. Owns finding and escaping them.

A value may contain sequences that clear a screen, rename a window, hide a line or reverse its direction: they are
printed as escapes such as `\\x1b`.
"""

from __future__ import annotations

import re

_CONTROL = (
    "\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
)
"""C0, C1, marks of direction, invisible characters, surrogates, and the two that XML does not allow."""
_ANY = re.compile(f"[{_CONTROL}]")
_BUT_LINES = re.compile(f"(?![\n\t])[{_CONTROL}]")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_line(text: str) -> str:
    r"""Return a text on one line, with these characters escaped.

    >>> print(escape_line("a\x1b[2Jb\n\u202ec"))
    a\x1b[2Jb\n\u202ec
    """
    return _ANY.sub(_escape_sequence, text)


def escape_lines(text: str) -> str:
    r"""Return a text with these characters escaped, except line ends and tabs.

    >>> print(escape_lines("a\x07\nb"))
    a\x07
    b
    """
    return _BUT_LINES.sub(_escape_sequence, text)


def escape_json(text: str) -> str:
    r"""Return equivalent JSON that a terminal only displays.

    >>> print(escape_json('["a\x9b", "\u202e"]'))
    ["a\u009b", "\u202e"]
    """
    return _BUT_LINES.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _escape_sequence(sign: re.Match[str]) -> str:
    number = ord(sign[0])
    return _NAMED.get(sign[0]) or (f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}")
