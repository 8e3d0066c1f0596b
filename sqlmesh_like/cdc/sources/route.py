"""Which declared table ingests the events of which source table. Owns only the matching, not decoding or writing."""

from __future__ import annotations

import re

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.nodes import Source, SourceTable


def route(source: Source, database: str | None, schema: str | None, table: str | None) -> SourceTable | None:
    """The declared table for events of `database`.`table`; None where none is declared.

    A source with schemas (PostgreSQL, SQL Server) may be declared as `schema.table` too. Raises ProjectError where two
    declarations claim the same events.
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
        # An event made up this name: it is one table's, and no expression, which could take the events of others.
        return wanted == whole
    return any(wanted == name or re.fullmatch(wanted, name) for name in (table, whole))
