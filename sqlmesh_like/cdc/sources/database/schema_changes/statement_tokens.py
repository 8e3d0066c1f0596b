"""The text of a statement of MariaDB or MySQL, taken apart. Owns tokens and clauses, not what they mean.

What would read differently by another `sql_mode` – backslashes – or has comments is not taken apart at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NAME = r'(?:`[^`]+`|"[^"]+"|[\w$]+)'
VALUE = rf"(?:'[^']*'|{NAME}|[-+]? ?[\d.]+)"
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>`[^`]+`|"[^"]+")|(?P<number>\d+(?:\.\d+)?(?![\w$]))"""
    r"""|(?P<word>[\w$]+)|(?P<sign>\S))""",
    re.S,
)
_COMMENT = re.compile(r"/\*|\*/|--|#")
_PLAIN = re.compile(r"'[\w .:+-]*'", re.ASCII)

Token = str | list["Token"]


def tokens(statement: str) -> list[Token] | None:
    """The tokens of a statement, those in parentheses as a list of their own; None: it is not understood.

    >>> tokens("ADD `a` DECIMAL(9,2) COMMENT 'it''s'")
    ['ADD', '`a`', 'DECIMAL', ['9', ',', '2'], 'COMMENT', "'?'"]
    """
    text = statement.strip().rstrip(";").rstrip()
    if "\\" in text:
        return None
    open_lists: list[list[Token]] = [[]]
    for match in _TOKEN.finditer(text):
        token = match[0].strip()
        if match["sign"] is None:
            if match["text"] is not None and not _PLAIN.fullmatch(token):
                token = "'?'"
            elif match["quoted"] is not None and re.search(r"[()']", token):
                return None
            open_lists[-1].append(token)
        elif token == "(":
            open_lists.append([])
        elif token == ")":
            if len(open_lists) == 1:
                return None
            group = open_lists.pop()
            open_lists[-1].append(group)
        elif token in "'\"`" or (token in "/-#*" and _COMMENT.match(text, match.start("sign"))):
            return None
        else:
            open_lists[-1].append(token)
    return open_lists[0] if len(open_lists) == 1 else None


def split_by_commas(group: Sequence[Token]) -> list[list[Token]]:
    """What commas separate.

    >>> split_by_commas(["a", ",", ["b", ",", "c"]])
    [['a'], [['b', ',', 'c']]]
    """
    parts: list[list[Token]] = [[]]
    for token in group:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def clause_text(clause: Sequence[Token]) -> str:
    """A clause as a text with one blank between tokens, in which parentheses are not nested.

    >>> clause_text(["CHECK", ["f", ["x"], ">", "1"]])
    'CHECK (f [x] > 1)'
    """
    return " ".join(token if isinstance(token, str) else f"({_inner(token)})" for token in clause)


def _inner(group: Sequence[Token]) -> str:
    return " ".join(token if isinstance(token, str) else f"[{_inner(token)}]" for token in group)
