"""Tokens that sqlglot's parser takes for something else. Owns writing them so that it reads what Spark reads."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, TokenType

_UNITS = frozenset("year month week day hour minute second millisecond microsecond".split())
_VALUES = (TokenType.NUMBER, TokenType.STRING)
_SIGNS = (TokenType.DASH, TokenType.PLUS)
EXPLICIT_CROSS = "CROSS "
"""The kind of a join that is written as CROSS JOIN, for the parser makes the same of a comma."""
_BEFORE_A_VALUE = frozenset({
    TokenType.SELECT, TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.PLUS, TokenType.DASH,
    TokenType.SLASH, TokenType.MOD, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT,
    TokenType.GTE, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.WHEN, TokenType.THEN, TokenType.ELSE,
    TokenType.WHERE, TokenType.ON, TokenType.HAVING, TokenType.BETWEEN, TokenType.DPIPE, TokenType.DISTINCT,
})  # fmt: skip
"""After these a plus is a sign."""
WITH_SUFFIX = "_sml_number_with_"
"""How the function is named that stands for a whole number with the suffix of its type until there is a tree: `7L`."""
TYPES_OF_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint"}
"""Of whole numbers."""
_BRACKETS = ((TokenType.L_PAREN, "("), (TokenType.R_PAREN, ")"))
_SETS = frozenset({TokenType.ROLLUP, TokenType.CUBE, TokenType.GROUPING_SETS})
_CONDITIONS = frozenset({
    TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ,
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IS, TokenType.IN, TokenType.LIKE, TokenType.ILIKE,
    TokenType.RLIKE, TokenType.BETWEEN,
})  # fmt: skip
"""Words and signs of expressions that the parser reads in ROLLUP, CUBE and GROUPING SETS within brackets only."""
_REWRITTEN = frozenset({
    TokenType.INTERVAL, TokenType.PLUS, TokenType.CROSS, TokenType.WINDOW, TokenType.DCOLON, *_SETS,
})  # fmt: skip


def readable(tokens: Sequence[Token]) -> list[Token]:
    """The tokens for the parser."""
    if not any(token.token_type in _REWRITTEN for token in tokens):
        return list(tokens)
    tokens = _with_bracketed_keys(tokens)
    read: list[Token] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        read.append(token)
        if token.token_type == TokenType.INTERVAL:
            size, text = _interval(tokens[at : at + 3 * 2 * len(_UNITS)])
            if size:
                read.append(_like(tokens[at], TokenType.STRING, text, tokens[at + size - 1].end))
                at += size
        elif token.token_type == TokenType.WINDOW and _is_grouped_call(tokens, at - 1):
            read[-1] = _like(token, TokenType.VAR, token.text, token.end)
        elif token.token_type == TokenType.CROSS:
            read[-1] = _like(token, TokenType.CROSS, EXPLICIT_CROSS, token.end)
        elif token.token_type == TokenType.PLUS and _is_sign(tokens, at - 1):
            # `+ text` is a number, but the parser drops the sign: two others have the same effect.
            read[-1:] = [_like(token, TokenType.DASH, "-", token.end)] * 2
        elif _is_suffixed(tokens, at - 1):
            number, suffix = tokens[at - 2], tokens[at]
            name = _like(number, TokenType.VAR, f"{WITH_SUFFIX}{suffix.text}", number.end)
            brackets = [_like(number, kind, text, suffix.end) for kind, text in _BRACKETS]
            read[-2:] = [name, brackets[0], number, brackets[1]]
            at += 1
    return read


def _with_bracketed_keys(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens with brackets around the conditions among the keys of ROLLUP, CUBE and GROUPING SETS.

    Source: `groupingSet` in Spark's `SqlBaseParser.g4`, which is any expression.
    """
    starts = [at + 1 for at, token in enumerate(tokens) if token.token_type in _SETS]
    read = list(tokens)
    for start in reversed(starts):
        for first, last in reversed(_conditions_among(read, start)):
            read.insert(last + 1, _like(read[last], TokenType.R_PAREN, ")", read[last].end))
            read.insert(first, _like(read[first], TokenType.L_PAREN, "(", read[first].end))
    return read


def _conditions_among(tokens: Sequence[Token], start: int) -> list[tuple[int, int]]:
    """The first and last token of each condition in a list in brackets, the first of which is at `start`."""
    found: list[tuple[int, int]] = []
    depth, first, is_condition = 0, start + 1, False
    for at in range(start, len(tokens)):
        kind = tokens[at].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        is_end = depth == 0 or (depth == 1 and kind == TokenType.COMMA)
        if is_end and is_condition and first < at:
            found.append((first, at - 1))
        if depth == 0:
            break
        if is_end:
            first, is_condition = at + 1, False
        elif depth == 1 and kind in _CONDITIONS:
            is_condition = True
    return found


def _interval(tokens: Sequence[Token]) -> tuple[int, str]:
    """The number of tokens of an interval of several units, and its text; 0 for one of a single unit.

    The parser makes a sum of it, without brackets: from `ts - interval 1 day 2 hours` only the day would be subtracted.
    Source: `multiUnitsInterval` in Spark's `SqlBaseParser.g4`.
    """
    parts: list[str] = []
    end = 0
    while end < len(tokens):
        at = end + (tokens[end].token_type in _SIGNS)
        if at + 1 >= len(tokens) or tokens[at].token_type not in _VALUES:
            break
        unit = tokens[at + 1].text.lower()
        if unit.removesuffix("s") not in _UNITS:
            break
        sign = "-" if tokens[end].token_type == TokenType.DASH else ""
        parts.append(f"{sign}{tokens[at].text.strip()} {unit}")
        end = at + 2
    return (end, " ".join(parts)) if len(parts) > 1 else (0, "")


def _is_grouped_call(tokens: Sequence[Token], at: int) -> bool:
    """Whether this word is the function of `GROUP BY window(…)`, which the parser takes for the next clause."""
    is_first = at > 0 and tokens[at - 1].token_type == TokenType.GROUP_BY
    return is_first and at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.L_PAREN


def _is_sign(tokens: Sequence[Token], at: int) -> bool:
    is_first = at == 0 or tokens[at - 1].token_type in _BEFORE_A_VALUE
    follows = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    return is_first and follows not in (TokenType.NUMBER, TokenType.INTERVAL, *_SIGNS)


def _is_suffixed(tokens: Sequence[Token], at: int) -> bool:
    """Whether a number and its suffix surround the sign of a cast that the tokenizer puts between them."""
    if tokens[at].token_type != TokenType.DCOLON or tokens[at - 1].token_type != TokenType.NUMBER:
        return False
    return tokens[at - 1].text.isdigit() and at + 1 < len(tokens) and tokens[at + 1].text.upper() in TYPES_OF_SUFFIXES


def _like(token: Token, kind: TokenType, text: str, end: int) -> Token:
    return Token(kind, text, token.line, token.col, token.start, end, token.comments)
