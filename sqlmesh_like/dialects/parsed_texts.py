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


def duck_template(text: str) -> exp.Expr:
    """The tree of an expression of DuckDB, whose columns the caller replaces.

    >>> duck_template("abs(x)").sql("duckdb"), duck_template("abs(x)") is duck_template("abs(x)")
    ('ABS(x)', False)
    """
    return _parse_template(text).copy()


@lru_cache(maxsize=1000)
def _parse_type(type_: str) -> exp.DataType:
    made = exp.DataType.build(type_, dialect="spark")
    with_flat_notes(made)
    return made


@lru_cache(maxsize=1000)
def _parse_template(text: str) -> exp.Expr:
    return with_flat_notes(sqlglot.parse_one(text, dialect="duckdb"))
