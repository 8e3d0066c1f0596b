"""Which declared table takes the events of which source table. Owns the matching; decoding and writing are not its."""

from __future__ import annotations

import re

from sqlmesh_like.errors import ProjectError
from sqlmesh_like.project.spec import Source, SourceTable


def route(source: Source, database: str | None, table: str | None) -> SourceTable | None:
    """The declared table for events of `database`.`table`; None where none is declared.

    Raises ProjectError where two declarations claim the same events.
    """
    found = [declared for declared in source.tables if _takes(declared, database, table)]
    if len(found) > 1:
        names = " and ".join(repr(declared.name) for declared in found)
        raise ProjectError(
            f"events of {database}.{table} belong to both {names} of source {source.name!r}",
            location=found[1].declared_at,
            hint="make their `database` and `table` exclusive",
        )
    return found[0] if found else None


def _takes(declared: SourceTable, database: str | None, table: str | None) -> bool:
    if declared.ingest is None or table is None:
        return False
    if declared.ingest.database is not None and declared.ingest.database != database:
        return False
    return declared.ingest.table == table or re.fullmatch(declared.ingest.table, table) is not None
