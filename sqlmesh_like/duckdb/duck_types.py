"""Spark's types and names in DuckDB, and back. Owns their spelling; what DuckDB is trusted with is `allow_list`'s."""

from __future__ import annotations

from sqlglot import exp

from sqlmesh_like.sql_text import standard_identifier

_NAMES = {
    "INTEGER": "int", "BIGINT": "bigint", "HUGEINT": "decimal(38,0)", "VARCHAR": "string", "DOUBLE": "double",
    "FLOAT": "float", "DATE": "date", "TIMESTAMP": "timestamp", "BOOLEAN": "boolean", "SMALLINT": "smallint",
    "TINYINT": "tinyint", "BLOB": "binary",
}  # fmt: skip


def cast_item(name: str, type_: str | None) -> str:
    """An item of a SELECT list: the column as this Spark type, or as it is."""
    return f"CAST({duck_quoted(name)} AS {duck_type(type_)}) AS {duck_quoted(name)}" if type_ else duck_quoted(name)


def duck_type(type_: str) -> str:
    """DuckDB's spelling of a Spark type.

    >>> duck_type("decimal(10,2)"), duck_type("string"), duck_type("bigint")
    ('DECIMAL(10, 2)', 'TEXT', 'BIGINT')
    """
    return without_zone(exp.DataType.build(type_, dialect="spark")).sql("duckdb")


def without_zone(node: exp.Expr) -> exp.Expr:
    """Times are UTC throughout: DuckDB's type with a zone would add nothing and needs another package."""
    if isinstance(node, exp.DataType) and node.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
        node.set("this", exp.DataType.Type.TIMESTAMP)
    return node


duck_quoted = standard_identifier
"""A name as DuckDB's SQL spells it."""


def spark_name(type_: str) -> str | None:
    """Spark's name of the type that a column has in DuckDB; None where it has none.

    >>> spark_name("DECIMAL(10, 2)"), spark_name("VARCHAR")
    ('decimal(10,2)', 'string')
    """
    return f"decimal{type_[7:].replace(' ', '')}" if type_.startswith("DECIMAL(") else _NAMES.get(type_)
