"""Record keys as SQL. Owns the text form of a key: non-null, and different for different values."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.one_zero import FLOATING
from sqlmesh_like.dialects import spark_type
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
    return exp.Cast(this=expression.copy(), to=spark_type("string"))


def encode(values: Sequence[exp.Expr], types: Sequence[str | None] = ()) -> exp.Expr:
    """One text of several values, injective: each value as `length.text`, NULL as `N`, separated by `/`.

    `types` of the values, if some may be floating numbers: the text of these is that of their bits, since the digits
    that Java shows of a number are not the same in all of its releases.

    It has no `:` and no `,`: Hudi 1.2.0 splits keys at these for its bucket index, and hangs on some that have both,
    such as `1N,:1a/a::N` (`KeyGenUtils.extractRecordKeysByFields`).

    >>> encode([column("a")]).sql("spark").count("REPLACE")
    6
    """
    if not values:
        return exp.Literal.string(SCALAR_KEY)
    kinds = types or [None] * len(values)
    parts = [_encode_one(_exact_text(value, type_)) for value, type_ in zip(values, kinds, strict=True)]
    if len(parts) == 1:
        return parts[0]
    joined: list[exp.Expr] = []
    for part in parts:
        joined += [exp.Literal.string("/"), part]
    return _concat(joined[1:])


ESCAPES = (("%", "%25"), (":", "%3A"), (",", "%2C"))
"""Characters of a part and what stands for them, in the order in which they are replaced."""


def _exact_text(value: exp.Expr, type_: str | None) -> exp.Expr:
    if type_ not in FLOATING:
        return as_text(value)
    bits = exp.Anonymous(this="PRINTF", expressions=[exp.Literal.string("%a"), value.copy()])
    return exp.Case().when(exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())), bits)


def _encode_one(text: exp.Expr) -> exp.Expr:
    escaped = text
    for character, code in ESCAPES:
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


def weight_of(sign: int) -> exp.Expr:
    """The weight of rows that enter (1) or leave (-1), as an item."""
    return exp.alias_(exp.cast(exp.Literal.number(sign), "bigint", dialect="spark"), WEIGHT, quoted=True)
