"""Errors in text that the parser refuses. Owns message, position and hint; the caller knows the file."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, TokenType
from sqlglot.errors import ParseError, TokenError

from sqlmesh_like.project.reading.column_types import nearest_type

_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>")
_EXPECTED = re.compile(r"Expecting (.*)|Expected (END) after CASE")
_SYMBOLS = {
    "EQ": "=", "NEQ": "<>", "GT": ">", "GTE": ">=", "LT": "<", "LTE": "<=", "ADD": "+", "SUB": "-", "MUL": "*",
    "DIV": "/", "NULLSAFEEQ": "<=>",
}  # fmt: skip
_PARTS = {"WHERE": "a condition", "HAVING": "a condition", "BETWEEN": "`… AND …`"}
"""What may be missing after a keyword, by its name in the parser."""
_KEYWORDS = (
    "SELECT FROM WHERE GROUP ORDER HAVING UNION JOIN LEFT RIGHT INNER OUTER CROSS LIMIT QUALIFY WINDOW WITH DISTINCT "
    "WHEN THEN ELSE BETWEEN INTERSECT EXCEPT LATERAL PARTITION"
).split()
"""Keywords that structure a query; the parser reads a misspelt one as a name."""
_ASCII = {"Pi": "'", "Pf": "'", "Pd": "-", "Sm": "-"}
"""What is meant by curly quotes and the dashes and minus signs of texts, by their category in Unicode."""
_AROUND = (0, -1, 1, -2)
"""Where a misspelt keyword may be, in tokens from the one at which the parser failed."""


def first_double_colon(sql: str) -> int | None:
    """Offset of the first `::`, which Spark 3.5 does not read as a cast.

    >>> first_double_colon("select 1L, 'a::b' as x"), first_double_colon("select a::int")
    (None, 8)
    """
    tokens = sqlglot.tokenize(sql, dialect="spark") if "::" in sql else []
    # The suffix of `1L` is such a token as well.
    written = (token for token in tokens if token.token_type == TokenType.DCOLON)
    return next((token.start for token in written if sql[token.start : token.end + 1] == "::"), None)


@dataclass(frozen=True)
class SyntaxFault:
    """Why text is not valid SQL; `offset` is the position in the text, None if unknown."""

    message: str
    offset: int | None
    hint: str | None = None


def syntax_fault(sql: str, error: ParseError) -> SyntaxFault:
    """The first fault in a text that the parser refused.

    >>> try:
    ...     sqlglot.parse_one("select a from t gruop by a", dialect="spark")
    ... except ParseError as error:
    ...     syntax_fault("select a from t gruop by a", error)
    SyntaxFault(message='unexpected `gruop`', offset=16, hint='did you mean GROUP?')
    """
    first = error.errors[0] if error.errors else {}
    said = str(first.get("description") or error)
    offset = _offset(sql, first.get("line"), first.get("col"), str(first.get("highlight") or ""))
    tokens = sqlglot.tokenize(sql, dialect="spark")
    if odd := first_odd_character(sql):
        return odd
    at = next((n for n, token in enumerate(tokens) if offset is not None and token.end >= offset), len(tokens) - 1)
    if said.startswith("Expected TYPE") and (word := _type_word(tokens, at)) is not None:
        return SyntaxFault(f"there is no type `{word.text}`", word.start, nearest_type(word.text))
    for index in (at + step for step in _AROUND if 0 <= at + step < len(tokens)):
        if keyword := _misspelt(tokens, index):
            return SyntaxFault(f"unexpected `{tokens[index].text}`", tokens[index].start, f"did you mean {keyword}?")
    if said.startswith("Invalid expression") or _continues_alias(tokens, at):
        return _unexpected_token(tokens, at)
    if expected := _EXPECTED.match(said):
        # For CASE sqlglot reports the last valid token, otherwise the first invalid one.
        token = tokens[min(at + 1, len(tokens) - 1)] if expected[2] else tokens[at]
        missing = f"`{expected[1] or expected[2]}` is missing"
        return SyntaxFault(f"invalid SQL: {missing} before `{token.text}`", token.start)
    if part := _MISSING.match(said):
        return _incomplete(tokens, at, part[1].upper(), offset)
    if said.startswith("Expected table name"):
        return SyntaxFault(f"invalid SQL: a table is missing before `{tokens[at].text}`", tokens[at].start)
    message = re.sub(r"<Token .*?text: (.*?), line.*", r"\1", said).strip().rstrip(".")
    return SyntaxFault(f"invalid SQL: {message.replace('SENTINEL', 'the end of the text')}", offset)


def first_odd_character(sql: str) -> SyntaxFault | None:
    """The first character outside of quotes that no SQL has, such as a curly quote: the parser takes it for a letter.

    >>> first_odd_character("select ‘x’ as a")
    SyntaxFault(message='unexpected `‘` (LEFT SINGLE QUOTATION MARK)', offset=7, hint="write '")
    """
    try:
        tokens = [] if sql.isascii() else sqlglot.tokenize(sql, dialect="spark")
    except TokenError:  # of a quote that is never closed, which the parser reports
        return None
    for token in tokens:
        if token.token_type is not TokenType.VAR or sql[token.start] == "`":
            continue
        for offset, letter in enumerate(sql[token.start : token.end + 1], token.start):
            if not letter.isascii() and unicodedata.category(letter)[0] in "PSCZ":
                plain = _ASCII.get(unicodedata.category(letter)) or unicodedata.normalize("NFKC", letter)
                hint = f"write {plain}" if plain.isascii() else "remove it"
                name = unicodedata.name(letter, f"U+{ord(letter):04X}")
                shown = f"`{letter}` ({name})" if letter.isprintable() else name
                return SyntaxFault(f"unexpected {shown}", offset, hint)
    return None


def _offset(sql: str, line: object, column: object, highlight: str) -> int | None:
    """0-based offset of a token; sqlglot reports its 1-based line and the column of its last character."""
    if not isinstance(line, int) or not isinstance(column, int):
        return None
    start = sum(len(text) + 1 for text in sql.split("\n")[: line - 1])
    return max(start, start + column - max(len(highlight), 1))


def _incomplete(tokens: Sequence[Token], at: int, name: str, offset: int | None) -> SyntaxFault:
    """A clause or operator that lacks a part; `at` is the token that came instead, or the last one."""
    if name == "EQ" and set(tokens[at].text + tokens[max(at - 1, 0)].text) == {"="}:
        return SyntaxFault(f"unexpected `{tokens[at].text}`", tokens[at].start, "values are compared by a single =")
    if part := _PARTS.get(name):
        begins = [token.start for token in tokens[: at + 1] if token.text.upper() == name]
        return SyntaxFault(f"invalid SQL: {part} is missing after {name}", begins[-1] if begins else offset)
    return SyntaxFault(f"invalid SQL: something is missing in {_SYMBOLS.get(name, name)}", offset)


def _misspelt(tokens: Sequence[Token], index: int) -> str | None:
    """The keyword that a token may be meant for; a word that is listed, called or qualified is taken as a name."""
    token = tokens[index]
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    before = tokens[index - 1].token_type if index else None
    names = (TokenType.COMMA, TokenType.DOT, TokenType.L_PAREN, TokenType.R_PAREN)
    if token.token_type != TokenType.VAR or after in names or before in (TokenType.DOT, TokenType.ALIAS):
        return None
    close = difflib.get_close_matches(token.text.upper(), _KEYWORDS, n=1, cutoff=0.75)
    return close[0] if close else None


def _unexpected_token(tokens: Sequence[Token], at: int) -> SyntaxFault:
    token = tokens[at]
    is_operand = token.token_type in (TokenType.VAR, TokenType.NUMBER, TokenType.STRING, TokenType.STAR)
    follows_name = at > 0 and tokens[at - 1].token_type in (TokenType.VAR, TokenType.R_PAREN, TokenType.NUMBER)
    hint = "a comma or an operator may be missing before it" if is_operand and follows_name else None
    if _continues_alias(tokens, at):
        hint = f"a comma or an operator may be missing before `{tokens[at - 1].text}`"
    if token.token_type == TokenType.R_PAREN:
        hint = "no bracket is open here"
    if token.token_type in (TokenType.L_BRACE, TokenType.R_BRACE):
        hint = "templates stand in two braces: {{ … }}"
    return SyntaxFault(f"unexpected `{token.text}`", token.start, hint)


def _continues_alias(tokens: Sequence[Token], at: int) -> bool:
    """Whether the word before a token was taken for the name of the expression before it, as in `select a b.c`."""
    ends = (TokenType.VAR, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN)
    continues = at > 1 and tokens[at].token_type in (TokenType.DOT, TokenType.L_PAREN)
    return continues and tokens[at - 1].token_type == TokenType.VAR and tokens[at - 2].token_type in ends


def _type_word(tokens: Sequence[Token], at: int) -> Token | None:
    """The word after AS, where a type is expected."""
    behind = (tokens[n] for n in range(max(1, at - 1), min(at + 3, len(tokens))) if tokens[n - 1].text.upper() == "AS")
    return next((token for token in behind if token.token_type == TokenType.VAR), None)
