"""The record of which tables of a database have been read from their first row. Owns its file.

The log alone does not have the rows that a table had before: a table that is wanted later needs a snapshot of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import Source


def note_tables(spool: Spool, source: Source, tables: Iterable[Table]) -> None:
    """Record which tables the first snapshot will read. Raises IngestError for others once there was one."""
    wanted = sorted(map(str, tables))
    if not spool.has_position:
        part = spool.folder / "tables.part"
        part.write_text(json.dumps(wanted), encoding="utf-8")
        os.replace(part, spool.folder / "tables.json")
        return
    known = _names(spool)
    if new := [name for name in wanted if name not in known]:
        raise IngestError(
            f"source {source.name!r} has read its database without {', '.join(new)}: the rows that they had before are"
            " not in its log",
            location=source.declared_at,
            hint=f"sml ingest -s source:{source.name} --from earliest reads all of its tables again",
        )


def _names(spool: Spool) -> list[str]:
    file = spool.folder / "tables.json"
    return list(map(str, json.loads(file.read_text(encoding="utf-8")))) if file.exists() else []
