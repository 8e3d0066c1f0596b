"""Texts of our own as trees: types and templates of expressions. Owns that each is parsed once and then copied.

A program casts hundreds of values to a dozen types, and a guarded query repeats a few templates. To parse such a text
takes ten times as long as to copy its tree.
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp

from sqlmesh_like.dialects.node_notes import with_flat_notes


def spark_type(type_: str) -> exp.DataType:
    """The tree of a Spark type. Raises sqlglot's ParseError for other texts.

    >>> spark_type("decimal(10,2)").sql("spark"), spark_type("int") is spark_type("int")
    ('DECIMAL(10, 2)', False)
    """
    return _parse_type(type_).copy()


def duck_template(text: str, **values: exp.Expr) -> exp.Expr:
    """The tree of an expression of DuckDB, which is more than a column.

    Columns with the name of a value are replaced by copies of it, in parentheses; other ones are left to the caller.

    >>> duck_template("abs(x)").sql("duckdb"), duck_template("abs(x)") is duck_template("abs(x)")
    ('ABS(x)', False)
    >>> duck_template("x * x + y", x=sqlglot.parse_one("a - x")).sql("duckdb")
    '(a - x) * (a - x) + y'
    """
    made = _parse_template(text).copy()
    for place in [column for column in made.find_all(exp.Column) if column.name in values]:
        place.replace(exp.Paren(this=values[place.name].copy()))
    return made


@lru_cache(maxsize=1000)
def _parse_type(type_: str) -> exp.DataType:
    made = exp.DataType.build(type_, dialect="spark")
    with_flat_notes(made)
    return made


@lru_cache(maxsize=1000)
def _parse_template(text: str) -> exp.Expr:
    return with_flat_notes(sqlglot.parse_one(text, dialect="duckdb"))
