"""Words and signs of Spark SQL, literals included. Owns how a literal is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from sqlmesh_like.cdc.in_process.values import NotProvenError, Value

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<raw>r'[^']*')
    | (?P<bytes>[xX]'[0-9A-Fa-f]*')
    | (?P<text>'(?:[^'\\]|\\.)*')
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?:BD|L|D)?(?![A-Za-z_0-9]))
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<sign><=>|->|!=|<>|<=|>=|[-+*/%().,=<>\[\]:])
    )""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str


def tokens(text: str) -> list[Token]:
    result, at, end = [], 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            raise NotProvenError(f"the syntax of {text[at : at + 40]!r}")
        kind = token.lastgroup or ""
        result.append(Token(kind, token[kind]))
        at = token.end()
    return result


_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescape(text: str) -> str:
    r"""The text of a literal, between its quotes, as Spark reads it.

    >>> unescape(r"it\'s \u0024{x} \d \\d")
    "it's ${x} d \\d"
    """

    def char(escape: re.Match[str]) -> str:
        code = escape[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(char, text) if "\\" in text else text


def number(text: str) -> Value:
    if text.endswith("BD"):
        return Decimal(text[:-2])
    if text.endswith("L"):
        return int(text[:-1])
    if text.endswith("D") or "e" in text.lower():
        return float(text.removesuffix("D"))
    return Decimal(text) if "." in text else int(text)
