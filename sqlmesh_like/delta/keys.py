"""Record keys as SQL. Owns the text form of a key: non-null, and different for different values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.names import KEY, WEIGHT

SCALAR_KEY = "all"
"""Key of the one row of an aggregate without GROUP BY."""


def column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def key() -> exp.Column:
    return column(KEY)


def weight() -> exp.Column:
    return column(WEIGHT)


def as_text(expression: exp.Expr) -> exp.Expr:
    return exp.Cast(this=expression.copy(), to=exp.DataType.build("string", dialect="spark"))


def encode(values: Sequence[exp.Expr]) -> exp.Expr:
    """One text of several values, injective: each value as `length.text`, NULL as `N`, separated by `/`.

    It has no `:` and no `,`: Hudi 1.2.0 splits keys at these for its bucket index, and hangs on some that have both,
    such as `1N,:1a/a::N` (`KeyGenUtils.extractRecordKeysByFields`).

    >>> encode([column("a")]).sql("spark").count("REPLACE")
    6
    """
    if not values:
        return exp.Literal.string(SCALAR_KEY)
    parts = [_encode_one(value) for value in values]
    if len(parts) == 1:
        return parts[0]
    joined: list[exp.Expr] = []
    for part in parts:
        joined += [exp.Literal.string("/"), part]
    return _concat(joined[1:])


_ESCAPES = (("%", "%25"), (":", "%3A"), (",", "%2C"))


def _encode_one(value: exp.Expr) -> exp.Expr:
    escaped = as_text(value)
    for character, code in _ESCAPES:
        escaped = exp.Replace(
            this=escaped, expression=exp.Literal.string(character), replacement=exp.Literal.string(code)
        )
    filled = _concat([as_text(exp.Length(this=escaped.copy())), exp.Literal.string("."), escaped])
    return exp.Coalesce(this=filled, expressions=[exp.Literal.string("N")])


def _concat(parts: Sequence[exp.Expr]) -> exp.Expr:
    """`||`, which is NULL for any NULL in both Spark and DuckDB (DuckDB's CONCAT would skip NULLs)."""
    result = parts[0]
    for part in parts[1:]:
        result = exp.DPipe(this=result, expression=part, safe=True)
    return result
