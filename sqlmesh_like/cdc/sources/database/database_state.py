"""What a database has and what the spool has of it, as an ingestion begins. Owns which tables are read on by their log.

Tables that are not read on miss changes from then on: the record (`read_tables`) says so before anything is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.cascades.cascaded_rows import CascadedRows
from sqlmesh_like.cdc.sources.database.connector_settings import database_of, publication_of, slot_of, wanted_tables
from sqlmesh_like.cdc.sources.database.key_ranges import large_tables
from sqlmesh_like.cdc.sources.database.logged_rows import losing_tables, require_logged
from sqlmesh_like.cdc.sources.database.partitions import (
    partitions_of,
    publish_whole,
    require_one_of_each,
    unread_partitions,
)
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables, begin, load_read_tables, store
from sqlmesh_like.cdc.sources.database.readiness import require_declared, require_ready
from sqlmesh_like.cdc.sources.database.schema_changes.table_layouts import TableLayout, table_layouts
from sqlmesh_like.cdc.sources.database.schema_changes.unlogged_changes import changed_layouts, statements_of_tables
from sqlmesh_like.cdc.sources.database.server import (
    LogEnd,
    Table,
    connect,
    drop_slot,
    is_mariadb,
    log_end,
    published_tables,
    tables_of,
)
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths

if TYPE_CHECKING:
    import sqlalchemy as sa


@dataclass(frozen=True)
class DatabaseState:
    """What the database said at the beginning. `tables`: those that the source reads; `record`: what it has of them.

    `partitions`: those of each table, in PostgreSQL; `added`: queries for rows of some that have not been read.
    `layouts`: the tables' columns, in PostgreSQL; `changed`: tables that must be read again for that, and why, once the
    log has been read up to where they were like this: it has values from before.
    """

    tables: tuple[Table, ...]
    record: ReadTables
    end: LogEnd | None
    is_mariadb: bool
    partitions: Mapping[str, str]
    added: Mapping[Table, str]
    layouts: Mapping[str, TableLayout]
    changed: Mapping[str, str]

    @property
    def followed(self) -> tuple[Table, ...]:
        """The tables whose changes are read."""
        return tuple(table for table in self.tables if str(table) in self.record.complete)


def database_state(place: SourcePaths, cascades: CascadedRows, start: str | None) -> DatabaseState:
    """Check that the database can be read, and ask it; with `start`, forget what was read of it. Raises SmlError."""
    source, settings, spool = place.source, database_of(place.source), spool_of(place)
    with connect(settings) as db:
        every = tables_of(db, settings)
        tables = wanted_tables(source, every)
        require_one_of_each(source, every, tables)
        if spool.has_position and start is None:
            _note_losing_tables(db, place, tables)
        require_ready(db, settings, tables)
        if start is not None or not spool.has_position:
            require_declared(db, source, every)
        require_logged(db, source, tables)
        if start is not None:
            spool.forget(tables, settings.database)
        is_postgres = settings.kind == "postgresql"
        partitions = partitions_of(db, tables) if is_postgres else {}
        if partitions:
            publish_whole(db, source, spool)
        layouts = table_layouts(db, tables) if is_postgres else {}
        if spool.has_position:
            record, added = _resume_tables(db, place, tables, partitions)
        else:
            if is_postgres:
                drop_slot(db, settings, slot_of(source, spool))
            record, added = begin(spool, source, tables, partitions, layouts), {}
        record = cascades.prepare(db, tables, record)
        if not spool.has_position and (large := large_tables(db, settings, tables)):
            first = cascades.with_children(record.without(large), tables).complete
            others = record.complete - first if spool.begins_anew else frozenset[str]()
            # The others are read when the log has a position.
            record = replace(record, complete=first, outdated=record.outdated | others)
            store(spool, record)
        lost = record.complete & record.incomplete
        changed = dict.fromkeys(sorted(lost), _WAS_LOST) | changed_layouts(source, tables, record, layouts)
        record = _with_layouts(place, record, layouts, changed)
        return DatabaseState(tables, record, log_end(db), is_mariadb(db), partitions, added, layouts, changed)


_WAS_LOST = "for a while it was not logged as it has to be"


def _note_losing_tables(db: sa.Connection, place: SourcePaths, tables: Sequence[Table]) -> None:
    """Record which tables lose changes now, so that they are read again once they no longer do."""
    spool = spool_of(place)
    known = load_read_tables(spool, place.source)
    record = replace(known, incomplete=known.incomplete | losing_tables(db, place.source, tables))
    if record != known:
        store(spool, record)


def has_other_tables(place: SourcePaths, state: DatabaseState) -> bool:
    """Whether a database that is followed has other tables, partitions or columns by now, or no longer logs all.

    Then it is asked again.

    Raises SmlError where it cannot be asked.
    """
    source, settings = place.source, database_of(place.source)
    with connect(settings) as db:
        tables = wanted_tables(source, tables_of(db, settings))
        if settings.kind == "postgresql":
            published = published_tables(db, publication_of(source, spool_of(place)))
            if published is not None and not set(map(str, tables)) <= published:
                return True
            if partitions_of(db, tables) != state.partitions:
                return True
            if changed_layouts(source, tables, state.record, table_layouts(db, tables)):
                return True
        if losing_tables(db, source, tables):
            return True
    return set(map(str, tables)) != set(map(str, state.tables))


def _resume_tables(
    db: sa.Connection, place: SourcePaths, tables: Sequence[Table], partitions: Mapping[str, str]
) -> tuple[ReadTables, Mapping[Table, str]]:
    """What the spool has of the tables, and queries for partitions that it lacks.

    Tables that are not read on are outdated from now on.
    """
    source, spool = place.source, spool_of(place)
    known = load_read_tables(spool, source)
    followed = set(map(str, tables))
    is_postgres = database_of(source).kind == "postgresql"
    if is_postgres and (published := published_tables(db, publication_of(source, spool))) is not None:
        followed &= published  # one that was dropped and created again is not published any more
    unread = unread_partitions(db, source, tables, known, partitions)
    statements = statements_of_tables(spool, source, tables, known.statements)
    anew = known.made_anew(statements.places)
    statements.warn(anew, known)
    followed -= anew | unread.whole
    record = known.followed(followed).completed(unread.up_to_date & followed, partitions)
    if record != known:
        store(spool, record)
    return record, {table: query for table, query in unread.rows.items() if str(table) in followed}


def _with_layouts(
    place: SourcePaths, record: ReadTables, layouts: Mapping[str, TableLayout], changed: Collection[str]
) -> ReadTables:
    """The record with the layouts of all complete tables that need not be read again for them.

    A lake of an earlier version has none: nothing is known of what was changed before.
    """
    updated = record.with_layouts(layouts, record.complete.difference(changed))
    if updated != record:
        store(spool_of(place), updated)
    return updated
