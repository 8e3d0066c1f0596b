"""Which declared table ingests the events of which source table. Owns only the matching, not decoding or writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.nodes import Source, SourceTable
from sqlmesh_like.project.reading.patterns import matches_whole


def route(source: Source, database: str | None, schema: str | None, table: str | None) -> SourceTable | None:
    """The declared table for events of `database`.`table`; None where none is declared.

    A declared `database` or `table` is a name, or a regular expression of whole names. In sources with schemas
    (PostgreSQL, SQL Server), the declaration may also name `schema.table`. Raises ProjectError where two declarations
    claim the same events.
    """
    entries = [declared for declared in source.tables if _takes(declared, database, schema, table)]
    if len(entries) > 1:
        origin = ".".join(filter(None, (database, schema, table)))
        names = " and ".join(repr(declared.name) for declared in entries)
        raise ProjectError(
            f"events of {origin} belong to both {names} of source {source.name!r}",
            location=entries[1].declared_at,
            hint="make their `database` and `table` exclusive",
        )
    return entries[0] if entries else None


def declares(tables: Sequence[SourceTable]) -> Callable[[str | None, str | None], bool]:
    """Whether one of these tables takes the events of a database and table."""
    return lambda database, table: any(_takes(declared, database, None, table) for declared in tables)


def _takes(declared: SourceTable, database: str | None, schema: str | None, table: str | None) -> bool:
    if declared.ingest is None or table is None:
        return False
    wanted, whole = declared.ingest, f"{schema}.{table}" if schema else table
    if declared.meta.get("discovered"):
        # The names come from an event, so they are no patterns: as such, they could match the events of other tables.
        return wanted.database in (None, database) and wanted.table == whole
    if wanted.database is not None and not _matches(wanted.database, database):
        return False
    return any(_matches(wanted.table, name) for name in (table, whole))


def _matches(pattern: str, name: str | None) -> bool:
    """
    >>> _matches("user_\\\\d+", "user_0"), _matches("user_\\\\d+", "user_0_old"), _matches("a+b", "a+b")
    (True, False, True)
    """
    return name is not None and (pattern == name or matches_whole(pattern, name))
