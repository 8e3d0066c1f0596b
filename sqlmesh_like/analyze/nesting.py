"""How deep a query may be nested. Owns the limits; beyond them the parser and every walk over its tree would run out of
stack, and compiled code would crash the process. Owns the error of a number that Python does not read, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import InvalidOperation

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.errors import Location, SqlError
from sqlmesh_like.limits.record import note_place

_MESSAGE = "the query is nested too deep"
_TOO_MANY_DIGITS = "Exceeds the limit"
MAX_BRACKETS = 200
MAX_TYPES = 50
_TYPE_BRACKET = re.compile(r"\b(?:array|map|struct)\s*<|>", re.IGNORECASE)
MAX_SQL_DEPTH = 3_000
"""Depth of a syntax tree: each operator of a chain such as `a or b or c` is one level."""
_OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})


@contextmanager
def nesting_errors(path: str) -> Iterator[None]:
    """Turn a RecursionError within the block into a SqlError for this file, which is worked on now.

    So are the errors of numbers that Python refuses to read, in literals and in texts of intervals: of more than 4,300
    digits, or a Decimal with an exponent of 20.
    """
    note_place(Location(path))
    try:
        yield
    except RecursionError:
        raise too_deep(path) from None
    except (ValueError, InvalidOperation) as error:
        if isinstance(error, ValueError) and not str(error).startswith(_TOO_MANY_DIGITS):
            raise
        hint = "a decimal of Spark has 38 digits at most"
        raise SqlError("a number is too large", location=Location(path, 1, 1), hint=hint) from None


def too_deep(path: str) -> SqlError:
    """
    >>> str(too_deep("models/a.sql"))
    'models/a.sql:1:1: the query is nested too deep\\n  split it into several models or CTEs'
    """
    return SqlError(_MESSAGE, location=Location(path, 1, 1), hint="split it into several models or CTEs")


def brackets_are_shallow(sql: str) -> bool:
    """Whether a text's brackets are shallow enough for the parser.

    >>> brackets_are_shallow("select " + "(" * 100 + "1" + ")" * 100), brackets_are_shallow("select " + "(" * 1000)
    (True, False)
    """
    if not _types_are_shallow(sql):
        return False
    if sum(map(sql.count, "([{")) <= MAX_BRACKETS:
        return True
    depth = 0
    for token in sqlglot.tokenize(sql, dialect=SPARK):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        if depth > MAX_BRACKETS:
            return False
    return True


def _types_are_shallow(sql: str) -> bool:
    """Whether nested types such as `array<array<…` are shallow enough: the parser reads each level at least twice."""
    depth = 0
    for sign in _TYPE_BRACKET.findall(sql) if sql.count("<") > MAX_TYPES else ():
        depth = max(depth - 1, 0) if sign == ">" else depth + 1
        if depth > MAX_TYPES:
            return False
    return True


def is_shallow(tree: exp.Expr) -> bool:
    """Whether a tree is shallow enough to be walked recursively."""
    level, nodes = 0, [tree]
    while nodes:
        level += 1
        if level > MAX_SQL_DEPTH:
            return False
        nodes = [child for node in nodes for child in node.iter_expressions()]
    return True


def parse_text(sql: str) -> exp.Expr:
    """Parse one Spark statement. Raises SqlglotError, also for several statements and for too deep nesting."""
    if not brackets_are_shallow(sql):
        raise ParseError(_MESSAGE)
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=SPARK) if tree is not None]
    except RecursionError:
        raise ParseError(_MESSAGE) from None
    if len(trees) != 1:
        raise ParseError("one statement is expected")
    if not is_shallow(trees[0]):
        raise ParseError(_MESSAGE)
    return trees[0]
