"""Which declared table ingests the events of which source table. Owns only the matching, not decoding or writing."""

from __future__ import annotations

import re

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.nodes import Source, SourceTable


def route(source: Source, database: str | None, schema: str | None, table: str | None) -> SourceTable | None:
    """The declared table for events of `database`.`table`; None where none is declared.

    In sources with schemas (PostgreSQL, SQL Server), the declaration may also name `schema.table`. Raises
    ProjectError where two declarations claim the same events.
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


def _takes(declared: SourceTable, database: str | None, schema: str | None, table: str | None) -> bool:
    if declared.ingest is None or table is None:
        return False
    if declared.ingest.database is not None and declared.ingest.database != database:
        return False
    wanted, whole = declared.ingest.table, f"{schema}.{table}" if schema else table
    if declared.meta.get("discovered"):
        # The name comes from an event, so it is not a pattern: as one, it could match the events of other tables.
        return wanted == whole
    return any(wanted == name or re.fullmatch(wanted, name) for name in (table, whole))
