"""Lists with a gap: `a,, b`, `a, from t`, `group by` of nothing, and brackets left open. Owns finding them in the text.

The parser silently drops such a gap, and what runs is generated from its tree; Spark would refuse the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import sqlglot
from sqlglot import TokenType

_COMMA = TokenType.COMMA
_ENDS = {
    TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY,
    TokenType.LIMIT, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT, TokenType.SEMICOLON, _COMMA,
}  # fmt: skip
_OPENS = {TokenType.SELECT: "SELECT", TokenType.GROUP_BY: "GROUP BY", TokenType.ORDER_BY: "ORDER BY", _COMMA: "a comma"}


def first_gap(sql: str) -> tuple[int, str] | None:
    """0-based offset and description of the first gap or unclosed bracket; None if there is none.

    >>> first_gap("select a,, b from t")
    (8, 'something is missing after a comma')
    >>> first_gap("select count(*), f() from t group by a, b order by a, limit") is None
    True
    """
    tokens = sqlglot.tokenize(sql, dialect="spark")
    before: sqlglot.Token | None = None
    for token, after in zip_longest(tokens, tokens[1:]):
        # Spark's default mode reserves no words: LIMIT begins a clause only before a number.
        is_name = token.token_type is TokenType.LIMIT and (after is None or after.token_type is not TokenType.NUMBER)
        if before is not None and token.token_type in _ENDS and not is_name:
            if before.token_type in _OPENS:
                return before.start, f"something is missing after {_OPENS[before.token_type]}"
            if before.token_type == TokenType.L_PAREN and token.token_type == _COMMA:
                return token.start, "something is missing before a comma"
        before = token
    if before is not None and before.token_type in _OPENS:
        return before.start, f"something is missing after {_OPENS[before.token_type]}"
    return _unclosed_bracket(tokens)


def _unclosed_bracket(tokens: Sequence[sqlglot.Token]) -> tuple[int, str] | None:
    opened: list[int] = []
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            opened.append(token.start)
        elif kind is TokenType.R_PAREN and opened:
            opened.pop()
    return (opened[-1], "this bracket is never closed") if opened else None
