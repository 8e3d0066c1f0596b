"""What a database logs of a change, by its settings. Owns which tables lack what they need of it, and what helps.

Where that is so nothing is read until it is mended, and then these tables are read again: what has changed meanwhile is
not in the log, or not with its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table
from sqlmesh_like.cdc.sources.database.server import Table, partitioned_above
from sqlmesh_like.errors import MachineError
from sqlmesh_like.names import storable_name
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.sql_text import standard_identifier

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True)
class Problem:
    """What keeps a database from being read, and the statement that helps."""

    text: str
    statement: str

    def __str__(self) -> str:
        return f"{self.text}\n    {self.statement}"


def require_logged(db: sa.Connection, source: Source, tables: Sequence[Table]) -> None:
    """Raises MachineError where PostgreSQL's log has too little of deleted rows for what their tables declare."""
    settings = database_of(source)
    if settings.kind == "postgresql" and (listed := _unlogged_keys(db, source, tables)):
        text = "".join(f"\n  {problem}" for each in listed.values() for problem in each)
        raise MachineError(f"{settings.address} logs too little of deleted rows:{text}", location=settings.declared_at)


def losing_tables(db: sa.Connection, source: Source, tables: Sequence[Table]) -> frozenset[str]:
    """The names of those tables whose changes are not logged, or not with all that they need, as things are now."""
    if database_of(source).kind == "postgresql":
        return frozenset(_unlogged_keys(db, source, tables))
    return frozenset(map(str, tables)) if any(binlog_problems(db)) else frozenset()


def binlog_problems(db: sa.Connection) -> Iterator[Problem]:
    """Settings of MariaDB or MySQL by which its binary log lacks changes, or values of them."""
    import sqlalchemy as sa

    wanted = {"log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL"}
    names = ", ".join(f"'{name}'" for name in wanted)
    rows = db.execute(sa.text(f"show global variables where variable_name in ({names})")).all()
    actual = {str(name).lower(): str(value).upper() for name, value in rows}
    if actual.get("log_bin") != "ON":
        yield Problem(
            "it writes no binary log", "my.cnf, section [mysqld]: log_bin=binlog, server_id=1; then restart it"
        )
    for name in ("binlog_format", "binlog_row_image"):
        if actual.get(name, wanted[name]) != wanted[name]:
            yield Problem(f"{name} is {actual[name]}", f"SET GLOBAL {name} = '{wanted[name]}';")


def _unlogged_keys(db: sa.Connection, source: Source, tables: Sequence[Table]) -> dict[str, list[Problem]]:
    """What PostgreSQL's log lacks of deleted rows, by the names of the tables that need it."""
    logged = _logged_of_deleted(db)
    above = partitioned_above(db)
    listed: dict[str, list[Problem]] = {}
    for table in tables:
        if (declared := declared_table(source, table)) is None:
            continue
        parts = [part for part, of in above.items() if str(table) in of] or [(table.schema or "", table.name)]
        found = [each for name in parts if (each := _unlogged(declared, name, logged.get(name))) is not None]
        listed |= {str(table): found} if found else {}
    return listed


def _logged_of_deleted(db: sa.Connection) -> dict[tuple[str, str], tuple[str, ...]]:
    """The columns that the log has of a deleted row, of tables of which it does not have all."""
    import sqlalchemy as sa

    query = (
        "select n.nspname, c.relname, array(select a.attname from pg_index x join pg_attribute a on a.attrelid = c.oid"
        " and a.attnum = any (x.indkey) where x.indrelid = c.oid"
        " and (case c.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident end))"
        " from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relreplident <> 'f'"
    )
    return {(schema, name): tuple(columns) for schema, name, columns in db.execute(sa.text(query)).all()}


def _unlogged(declared: SourceTable, name: tuple[str, str], logged: Sequence[str] | None) -> Problem | None:
    ingest = declared.ingest
    if ingest is None or logged is None or ingest.deletes == "retention":
        return None
    known = {storable_name(column).lower() for column in logged}
    lacking = [key for key in ingest.primary_key if key != ingest.origin and key.lower() not in known]
    needed = f"primary_key of {declared.table} names {', '.join(lacking)}" if lacking else ""
    if ingest.order_by and not lacking:
        needed = f"order_by of {declared.table} names {', '.join(ingest.order_by)}"
    if not needed:
        return None
    return Problem(
        f"{'.'.join(name)} logs {', '.join(logged) or 'no column'} of a deleted row, and {needed}",
        f"ALTER TABLE {'.'.join(map(standard_identifier, name))} REPLICA IDENTITY FULL;",
    )
