"""The parts of a row key that was made of others. Owns reading back what `delta.keys.encode` wrote."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.delta.keys import ESCAPES

MOST_PLACE = 2
"""The last place of a key whose parts are read: the text of the query grows with each part that comes before."""


def part_of(key: exp.Expr, place: int) -> exp.Expr:
    """The part at a place of an encoded list of values: its text, or NULL.

    >>> import sqlglot
    >>> from sqlmesh_like.delta.keys import column, encode
    >>> part_of(column("k"), 0).sql("duckdb").count("REPLACE")
    3
    """
    rest = key
    for _ in range(place):
        rest = exp.Case().when(_is_null(rest), _from(rest, exp.Literal.number(3))).else_(_from(rest, _end(rest)))
    text: exp.Expr = exp.Substring(this=rest.copy(), start=_plus(_dot(rest), 1), length=_length(rest))
    for character, code in reversed(ESCAPES):
        text = exp.Replace(this=text, expression=exp.Literal.string(code), replacement=exp.Literal.string(character))
    return exp.Case().when(exp.not_(_is_null(rest)), text)


def _is_null(rest: exp.Expr) -> exp.Expr:
    """Whether the first part is NULL, which is written as a letter."""
    first = exp.Substring(this=rest.copy(), start=exp.Literal.number(1), length=exp.Literal.number(1))
    return exp.EQ(this=first, expression=exp.Literal.string("N"))


def _dot(rest: exp.Expr) -> exp.Expr:
    """The position of the dot after the length of the first part."""
    return exp.StrPosition(this=rest.copy(), substr=exp.Literal.string("."))


def _length(rest: exp.Expr) -> exp.Expr:
    before = exp.Sub(this=_dot(rest), expression=exp.Literal.number(1))
    digits = exp.Substring(this=rest.copy(), start=exp.Literal.number(1), length=_at_least(before, 0))
    return _at_least(exp.cast(digits, "int", dialect="spark"), 0)


def _end(rest: exp.Expr) -> exp.Expr:
    """Where the next part begins, after a separator."""
    return _plus(exp.Add(this=_dot(rest), expression=_length(rest)), 2)


def _from(rest: exp.Expr, start: exp.Expr) -> exp.Expr:
    return exp.Substring(this=rest.copy(), start=start)


def _plus(number: exp.Expr, further: int) -> exp.Expr:
    return _at_least(exp.Add(this=number, expression=exp.Literal.number(further)), 1)


def _at_least(number: exp.Expr, least: int) -> exp.Expr:
    """A position or length that every engine reads alike."""
    return exp.Greatest(this=number, expressions=[exp.Literal.number(least)])
