"""The record of which tables of a database have been read from their first row. Owns its file.

The log alone does not have the rows that a table had before: a table that is wanted later needs a snapshot of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool, replace_file
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import Source


def note_tables(spool: Spool, source: Source, tables: Iterable[Table]) -> None:
    """Record which tables of which database the first snapshot will read.

    Raises IngestError for another database, and for other tables, once there was a snapshot.
    """
    settings, wanted = database_of(source), sorted(map(str, tables))
    database = f"{settings.kind}:{settings.database}"
    file = spool.folder / "tables.json"
    if not spool.has_position:
        replace_file(file, json.dumps({"database": database, "tables": wanted}).encode())
        return
    known = json.loads(file.read_text(encoding="utf-8"))
    problem = ""
    if known["database"] != database:
        problem = f"has read {known['database']} before, not {database}"
    elif new := [name for name in wanted if name not in known["tables"]]:
        problem = f"has read its database without {', '.join(new)}: the rows that they had before are not in its log"
    if problem:
        raise IngestError(
            f"source {source.name!r} {problem}",
            location=source.declared_at,
            hint=f"sml ingest -s source:{source.name} --from earliest reads all of its tables again",
        )
