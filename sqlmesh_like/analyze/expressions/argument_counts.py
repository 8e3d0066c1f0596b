"""Calls with too few or too many arguments. Owns finding them in the text of a query: the parser takes any number.

A function of which the catalogue has no counts takes any number, or has a syntax of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlglot
from sqlglot import Token, TokenType

from sqlmesh_like.analyze.functions.catalogue import function_named
from sqlmesh_like.analyze.functions.function import MANY

_UNCHECKED = frozenset({
    "any", "some", "exists", "filter", "rank", "dense_rank", "percent_rank", "like", "ilike", "mask", "timestampdiff",
    "charindex",
})  # fmt: skip
"""Names that are also words of the grammar, or functions whose number of arguments Spark does not check."""
_OWN_SYNTAX = frozenset({"from", "for", "in", "as", "placing", "using"})
"""Words with which a call has no list of arguments: `substring(a from 2)`, `position(a in b)`."""
_NO_CALL_AFTER = frozenset({
    TokenType.DOT, TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.DCOLON,
    TokenType.COLON, TokenType.LT,
})  # fmt: skip
"""What stands before a name that is an alias with columns, a type or a clause, and no function."""


def first_miscounted(sql: str) -> tuple[int, str] | None:
    """0-based offset and description of the first call with too few or too many arguments; None if there is none.

    >>> first_miscounted("select substring(a), count(*) from t")
    (7, 'substring takes 2 or 3 arguments, not 1')
    >>> first_miscounted("with first(a, b, c) as (select 1, 2, 3) select trim(both from a) from first") is None
    True
    """
    tokens = sqlglot.tokenize(sql, dialect="spark")
    for at in range(len(tokens) - 1):
        if tokens[at + 1].token_type is not TokenType.L_PAREN or sql[tokens[at].start] in "`'\"":
            continue
        if (counts := _counts(tokens[at].text.lower())) is None:
            continue
        if at and tokens[at - 1].token_type in _NO_CALL_AFTER:
            continue
        given = _argument_count(tokens, at + 1)
        if given is not None and not counts[0] <= given <= counts[1]:
            return tokens[at].start, f"{tokens[at].text.lower()} takes {_words(*counts)}, not {given}"
    return None


_CASTS = frozenset("boolean tinyint smallint int bigint float double string binary date timestamp".split())
"""Functions that are named as a type: none of these types has parameters."""


def _counts(name: str) -> tuple[int, int] | None:
    if name in _CASTS:
        return 1, 1
    function = None if name in _UNCHECKED else function_named(name)
    return None if function is None else function.counts


def _argument_count(tokens: Sequence[Token], opening: int) -> int | None:
    """How many arguments the bracket has; None where it is not a list of arguments, or not known."""
    inside = list(_within(tokens, opening))
    end = opening + 1 + len(inside)
    names_columns = [token.text.lower() for token in tokens[end + 1 : end + 3]] == ["as", "("]
    if end >= len(tokens) or names_columns:
        return None
    shallow = [token for token, depth in inside if depth == 0]
    has_star = any(token.token_type is TokenType.STAR and _is_whole(shallow, at) for at, token in enumerate(shallow))
    if has_star or any(t.text.lower() in _OWN_SYNTAX or t.token_type is TokenType.FARROW for t in shallow):
        return None
    return 0 if not inside else 1 + sum(token.token_type is TokenType.COMMA for token in shallow)


def _is_whole(tokens: Sequence[Token], at: int) -> bool:
    """Whether a star stands for columns rather than between two factors."""
    return at == 0 or tokens[at - 1].token_type in (TokenType.COMMA, TokenType.DOT)


def _within(tokens: Sequence[Token], opening: int) -> Iterator[tuple[Token, int]]:
    """The tokens in a bracket, each with the number of brackets that it is in within this one."""
    depth = 0
    for token in tokens[opening + 1 :]:
        if token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET):
            if depth == 0:
                return
            depth -= 1
        yield token, depth
        depth += token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)


def _words(least: int, most: int) -> str:
    if most == MANY:
        return f"at least {least} argument{'' if least == 1 else 's'}"
    numbers = f"{least} or {most}" if most == least + 1 else f"{least} to {most}" if most > least else str(most)
    return f"{numbers} argument{'' if most == 1 else 's'}" if most else "no arguments"
