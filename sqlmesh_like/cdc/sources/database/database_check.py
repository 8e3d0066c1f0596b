"""Whether the database of a source can be read, in words. Owns what `sml debug` says of it, and `sml ingest` before."""

from __future__ import annotations

from sqlmesh_like.cdc.sources.database.cascades.cascaded_rows import unread_parent_notes
from sqlmesh_like.cdc.sources.database.connector_settings import database_of, wanted_tables
from sqlmesh_like.cdc.sources.database.logged_rows import require_logged
from sqlmesh_like.cdc.sources.database.partitions import require_one_of_each
from sqlmesh_like.cdc.sources.database.readiness import notes, require_declared, require_ready
from sqlmesh_like.cdc.sources.database.server import connect, tables_of
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import Source


def check_database(source: Source, place: SourcePaths | None = None) -> str:
    """Describe the database of a source. Raises SmlError where it cannot be read.

    `place`: where the lake has the source; a table that its snapshot has read may be gone since.
    """
    settings = database_of(source)
    with connect(settings) as db:
        tables = wanted_tables(source, every := tables_of(db, settings))
        require_one_of_each(source, every, tables)
        require_ready(db, settings, tables)
        if place is None or not spool_of(place).has_position:
            require_declared(db, source, every)
        require_logged(db, source, tables)
        unread = unread_parent_notes(db, settings, tables)
    summary = f"{settings.address} has {len(tables)} of its tables, and its log can be read, of source {source.name}"
    return "".join((summary, *(f"\n  {note}" for note in (*notes(settings, tables), *unread))))
