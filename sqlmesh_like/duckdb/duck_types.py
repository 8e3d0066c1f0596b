"""Spark's types and names in DuckDB, and back. Owns their spelling; `allow_list` owns what DuckDB is trusted with."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from sqlmesh_like.analyze.spark_types.nested_types import element_of, entry_of, typed_fields_of
from sqlmesh_like.dialects import spark_type
from sqlmesh_like.duckdb.dialect import DUCKDB
from sqlmesh_like.sql_text import standard_identifier

_NAMES = {
    "INTEGER": "int", "BIGINT": "bigint", "HUGEINT": "decimal(38,0)", "VARCHAR": "string", "DOUBLE": "double",
    "FLOAT": "float", "DATE": "date", "TIMESTAMP": "timestamp", "BOOLEAN": "boolean", "SMALLINT": "smallint",
    "TINYINT": "tinyint", "BLOB": "binary",
}  # fmt: skip


def cast_item(name: str, type_: str | None) -> str:
    """An item of a SELECT list: the column cast to this Spark type, or unchanged for None."""
    return f"CAST({duck_quoted(name)} AS {duck_type(type_)}) AS {duck_quoted(name)}" if type_ else duck_quoted(name)


@lru_cache(maxsize=1000)
def duck_type(type_: str) -> str:
    """DuckDB's spelling of a Spark type.

    >>> duck_type("decimal(10,2)"), duck_type("string"), duck_type("bigint")
    ('DECIMAL(10, 2)', 'TEXT', 'BIGINT')
    >>> duck_type("array<timestamp>")
    'TIMESTAMP[]'
    >>> duck_type("struct<select:int,at:timestamp>")
    'STRUCT("select" INT, "at" TIMESTAMP)'
    """
    return type_tree(type_).transform(without_zone).sql(DUCKDB)


def type_tree(type_: str) -> exp.DataType:
    """A Spark type as a tree, part by part: sqlglot drops the fields of a struct that are named by keywords."""
    if element := element_of(type_):
        return exp.DataType(this=exp.DType.ARRAY, expressions=[type_tree(element)], nested=True)
    if entry := entry_of(type_):
        return exp.DataType(this=exp.DType.MAP, expressions=[type_tree(each) for each in entry], nested=True)
    if fields := typed_fields_of(type_):
        defined = [exp.ColumnDef(this=exp.to_identifier(n, quoted=True), kind=type_tree(t)) for n, t in fields]
        return exp.DataType(this=exp.DType.STRUCT, expressions=defined, nested=True)
    return spark_type(type_)


def without_zone(node: exp.Expr) -> exp.Expr:
    """The node; a type with a zone becomes TIMESTAMP, as all times are UTC and DuckDB's needs another package."""
    if isinstance(node, exp.DataType) and node.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
        node.set("this", exp.DataType.Type.TIMESTAMP)
    return node


duck_quoted = standard_identifier
"""A name quoted for DuckDB's SQL."""


def spark_name(type_: str) -> str | None:
    """Spark's name for a DuckDB type; None if there is none.

    >>> spark_name("DECIMAL(10, 2)"), spark_name("VARCHAR")
    ('decimal(10,2)', 'string')
    """
    return f"decimal{type_[7:].replace(' ', '')}" if type_.startswith("DECIMAL(") else _NAMES.get(type_)
