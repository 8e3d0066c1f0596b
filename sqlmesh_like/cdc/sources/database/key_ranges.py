"""Large tables of a database, divided by their primary key. Owns where a range ends, and the query of its rows.

A range is read by one query of its own: none of them is open for long, and what was read before a kill stays read. The
bounds are values that the column has, compared by the database as it orders them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES, Dialect
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.project.nodes import DatabaseKind, DatabaseSettings
from sqlmesh_like.sql_text import standard_identifier

if TYPE_CHECKING:
    import sqlalchemy as sa

_OF_SNAPSHOTS = re.compile(r"snapshot\.")


@dataclass(frozen=True)
class KeyRange:
    """The rows of `query`: those after the one literal, up to the other (None: to the end). `key`: the column."""

    key: str
    query: str
    upto: str | None


def may_divide(settings: DatabaseSettings, table: Table) -> bool:
    """Whether rows of the table can be asked for by a query of ours."""
    # Debezium's settings name the table, and queries of the user's may leave rows out.
    is_plain = re.fullmatch(r"\w+", f"{table.schema or ''}{table.name}", re.ASCII) is not None
    return bool(table.key) and is_plain and not any(_OF_SNAPSHOTS.match(option) for option in settings.options)


def next_range(db: sa.Connection, settings: DatabaseSettings, table: Table, after: str | None = None) -> KeyRange:
    """The next rows of a table by the first column of its key: `rows_per_query`, or all that are left.

    They are more where many rows have the same value, and all that are left where the type has no certain order or
    literal. Raises sqlalchemy's errors where the database cannot be asked.
    """
    dialect, key = DATABASES[settings.kind], table.key[0]
    name = dialect.name(key)
    relation = f"{dialect.name(table.schema or settings.database)}.{dialect.name(table.name)}"
    beyond = "" if after is None else f" where {name} > {after}"
    upto = None
    if _has_order(db, settings.kind, table):
        query = f"select {name} from {relation}{beyond} order by {name} limit 1 offset {settings.rows_per_query - 1}"
        value = db.exec_driver_sql(query.replace("%", "%%")).scalar_one_or_none()
        upto = None if value is None else _literal(dialect, settings.kind, value)
    bounds = [f"{name} {sign} {value}" for sign, value in ((">", after), ("<=", upto)) if value is not None]
    return KeyRange(key, f"select * from {relation} where {' and '.join(bounds) or '1 = 1'}", upto)


def large_tables(db: sa.Connection, settings: DatabaseSettings, tables: Collection[Table]) -> frozenset[str]:
    """The names of the tables that are read in several ranges."""
    return frozenset(
        str(table)
        for table in tables
        if may_divide(settings, table) and next_range(db, settings, table).upto is not None
    )


def estimated_rows(db: sa.Connection, table: Table) -> int | None:
    """How many rows the catalog says that a table has; None where it does not know."""
    import sqlalchemy as sa

    if db.dialect.name == "postgresql":
        query = (
            "select sum(nullif(c.reltuples, -1)) from pg_class c where c.oid = to_regclass(:name) and c.relkind = 'r'"
            " or c.oid in (select relid from pg_partition_tree(to_regclass(:name)) where isleaf)"
        )
        name = f"{standard_identifier(table.schema or '')}.{standard_identifier(table.name)}"
    else:
        query = (
            "select table_rows from information_schema.tables where table_schema = database() and table_name = :name"
        )
        name = table.name
    rows = db.execute(sa.text(query), {"name": name}).scalar_one_or_none()
    return int(rows) if rows else None


def _has_order(db: sa.Connection, kind: DatabaseKind, table: Table) -> bool:
    """Whether the first column of the key is compared with literals as it is ordered: enumerated types are not."""
    import sqlalchemy as sa

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sa.exc.SAWarning)  # of another column's type that it does not know
        columns = {each["name"]: each["type"] for each in sa.inspect(db).get_columns(table.name, table.schema)}
    ordered: tuple[type[Any], ...] = (sa.Integer, sa.Numeric, sa.CHAR, sa.VARCHAR, sa.BINARY, sa.VARBINARY, sa.Uuid)
    if kind == "postgresql":
        ordered = (*ordered, sa.TEXT)
    type_ = columns.get(table.key[0])
    return isinstance(type_, ordered) and not isinstance(type_, (sa.Float, sa.Enum))


def _literal(dialect: Dialect, kind: DatabaseKind, value: object) -> str | None:
    """The literal of a key's value, on one line; None where there is none that is certain.

    >>> [_literal(DATABASES["mysql"], "mysql", value) for value in (7, "a'", b"\\x01", True)]
    ['7', "_utf8mb4 x'6127'", "x'01'", None]
    >>> [_literal(DATABASES["postgresql"], "postgresql", value) for value in (Decimal("7.50"), "a'", "a\\\\n")]
    ['7.50', "'a'''", None]
    """
    match value:
        case bool():
            return None
        case int():
            return str(value)
        case Decimal():
            return f"{value:f}" if value.is_finite() else None
        case UUID():
            return f"'{value}'"
        case bytes() if kind == "mysql":
            return dialect.bytes_literal(value.hex())
        case str() if kind == "mysql" or re.fullmatch(r"[^\\\x00-\x1f\x7f]*", value):
            return dialect.text_literal(value)
    return None
