"""The events of a database for one ingestion. Owns when its engine runs, and what is confirmed to the database.

Events are spooled first (`spool`), then read like files: a table's commit records which segments it holds, as with any
file. Only what all tables hold is confirmed to the database, which may then clean its log that far.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.sources.database.cascades.cascaded_rows import MOST_ROUNDS, CascadedRows
from sqlmesh_like.cdc.sources.database.connector_settings import (
    connector_settings,
    database_of,
    declared_table,
)
from sqlmesh_like.cdc.sources.database.database_state import database_state, has_other_tables
from sqlmesh_like.cdc.sources.database.engine import Engine, EngineFailure, engine_error
from sqlmesh_like.cdc.sources.database.later_tables import add_rows, add_rows_of_partitions
from sqlmesh_like.cdc.sources.database.load_progress import LoadProgress
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables, store
from sqlmesh_like.cdc.sources.database.readiness import generated_notes
from sqlmesh_like.cdc.sources.database.schema_changes.row_statements import acting_names, changed_tables
from sqlmesh_like.cdc.sources.database.schema_changes.unlogged_changes import (
    statements_of_tables,
    warn_of_changed_values,
)
from sqlmesh_like.cdc.sources.database.server import (
    DatabaseAwayError,
    Table,
    connect,
    log_end,
)
from sqlmesh_like.cdc.sources.database.spool import RowStatement, ends, spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import IngestError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.project.nodes import SourceTable

_log = logging.getLogger("sqlmesh_like.cdc")
_PATIENCE_SECONDS = 1800.0
"""How long a database that is followed may be away."""
_PAUSE_SECONDS = 10.0
_ATTEMPTS = 3
"""How often the log is begun to be read where the database goes away meanwhile."""
_MOST_STATEMENTS = 2**20
"""Bytes of statements of other tables that are noted before they are dropped, which the engine has to end for."""
_LISTING_SECONDS = 300.0
"""How often a database that is followed is asked which tables it has."""
_SOUND_SECONDS = 60.0
"""After so long an engine counts as having reached its database."""


def spool_log(place: SourcePaths) -> None:
    """Spool all that the log of a source holds now; its tables read it with the next ingestion.

    Raises SmlError where that cannot be read, or not to its end, and where there was no snapshot yet.
    """
    if not spool_of(place).has_position:
        raise IngestError(
            f"source {place.source.name!r} has no position in the log of its database",
            location=place.source.declared_at,
            hint=f"ingest it first: sml ingest -s source:{place.source.name}",
        )
    capture = DatabaseCapture(place)
    try:
        capture.prepare(None)
        capture.read_to_end()
    finally:
        capture.close()
    if stop_signals.is_wished():
        raise IngestError(f"stopped before the log of source {place.source.name!r} was read to its end")


class DatabaseCapture:
    """The engine of one source, from `read_to_end` or `follow` to `close`."""

    def __init__(self, place: SourcePaths) -> None:
        self.place, self.spool = place, spool_of(place)
        self._engine: Engine | None = None
        self._settings = database_of(place.source)
        self._follows = False
        self._away_since: float | None = None
        self._next_start = time.monotonic()
        self._next_listing = self._next_start + _LISTING_SECONDS
        self._statements = 0
        self._statements_looked_at = 0
        self._statement_rounds = 0
        self._cascades = CascadedRows(place)
        self._noted = frozenset[str]()

    def prepare(self, start: str | None) -> None:
        """Check that the database can be read; with `start`, forget what was read of it. Raises SmlError."""
        self.spool.prepare()
        self._asked = database_state(self.place, self._cascades, start)
        noted = frozenset(f"{each.text} ({each.statement})" for each in generated_notes(self._asked.tables))
        for note in sorted(noted - self._noted):
            _log.warning("%s", note)
        self._noted |= noted

    def read_later_tables(self, again: Collection[str] = ()) -> None:
        """Spool all rows of tables that are read for the first time after others, or that `again` names.

        `again`: declared tables. Raises SmlError where they cannot be read.
        """
        source, asked = self.place.source, self._asked
        if not self.spool.has_position:  # the first snapshot reads all tables
            return
        routed = {table: declared_table(source, table) for table in asked.tables}
        named = {str(table) for table, declared in routed.items() if declared is not None and declared.name in again}
        record = self._cascades.with_children(asked.record, asked.tables).without(named)
        later = [table for table in asked.tables if str(table) not in record.complete]
        added = {table: query for table, query in asked.added.items() if table not in later}
        if not later and not added:
            return
        statements = statements_of_tables(self.spool, source, asked.tables, record.statements)
        places = {**statements.places, **asked.partitions}
        if added:
            _log.warning("reading the rows of new partitions of %s", ", ".join(map(str, added)))
            record = add_rows_of_partitions(self.place, added, record, places)
        if later:
            _log.warning("reading all rows of %s", ", ".join(map(str, later)))
            record = add_rows(self.place, later, self._with_new_layouts(record, later), places)
        with connect(self._settings) as db:  # changes while they were read come with them
            self._asked = replace(asked, record=record, end=log_end(db), added={})

    def _with_new_layouts(self, record: ReadTables, later: Sequence[Table]) -> ReadTables:
        """The record with the layouts of tables that have none of their own: events of theirs come from here on."""
        layouts = self._asked.layouts
        new = [
            name
            for name in map(str, later)
            if (now := layouts.get(name.lower())) is not None
            and ((before := record.layouts.get(name.lower())) is None or before.table != now.table)
        ]
        return record.with_layouts(layouts, new)

    @property
    def tables_read(self) -> tuple[SourceTable, ...]:
        """The declared tables of which the spool has had all rows that there are."""
        complete = [table for table in self._asked.tables if str(table) in self._asked.record.complete]
        routed = (declared_table(self.place.source, table) for table in complete)
        return tuple({table.name: table for table in routed if table is not None}.values())

    def read_to_end(self) -> None:
        """Spool all that the log holds now, and rows that it does not name: those of tables that were made anew, and
        those that foreign keys have changed.

        Raises SmlError where the engine ends before.
        """
        is_first = not self.spool.has_position
        self._read_log()
        while (
            any((self._note_made_tables(), self._note_row_statements(), self._note_changed_layouts()))  # all of them
            or self._add_cascaded_rows()
            or (is_first and self._has_unread_tables())
        ):
            self.close()
            self.read_later_tables()
            self._read_log()
        if not stop_signals.is_wished():
            self._cascades.forget_former_keys()

    def _has_unread_tables(self) -> bool:
        """Whether there are tables, large ones, that the first snapshot has left out."""
        return not stop_signals.is_wished() and len(self._asked.followed) < len(self._asked.tables)

    def _add_cascaded_rows(self) -> bool:
        """Whether foreign keys had changed rows: these are in the spool now, or their tables must be read again."""
        cascades, followed = self._cascades, self._asked.followed
        if stop_signals.is_wished() or not cascades.have_acted(followed):
            return False
        if cascades.rounds == MOST_ROUNDS and not self._follows:
            return False
        self.close()
        record = cascades.add_rows(followed, self._asked.record)
        with connect(self._settings) as db:  # changes while they were read come with them
            self._asked = replace(self._asked, record=record, end=log_end(db))
        return True

    def _read_log(self) -> None:
        attempt, progress = 0, LoadProgress(f"tables of source {self.place.source.name}")
        while self._has_log_to_read() and not self.spool.is_at(self._asked.end):
            engine, attempt = self._begin(follows=False), attempt + 1
            try:
                has_all = engine.wait_until_caught_up(lambda: self._may_go_on(engine, progress))  # noqa: B023
            except EngineFailure as failure:
                self.close()
                error = engine_error(self._settings, str(failure), self.place.source.name)
                if attempt == _ATTEMPTS or not isinstance(error, DatabaseAwayError):
                    raise error from None
                continue
            fault_point("database.spooled")
            if self._settings.kind == "mysql" or not has_all:  # there is nothing to confirm
                self.close()
            return

    def _read_first_tables(self) -> None:
        """Spool the first snapshot, if there are tables that must come after it."""
        if not self.spool.has_position and self._has_unread_tables():
            self._read_log()
            self.close()

    def _has_log_to_read(self) -> bool:
        """Without a table the engine would read all of them; its first position comes before rows of large ones."""
        return bool(self._asked.followed or (self._asked.tables and not self.spool.has_position))

    def _may_go_on(self, engine: Engine, progress: LoadProgress) -> bool:
        if not self.spool.has_position:
            progress.note(engine.events)
        return not stop_signals.is_wished()

    def _note_made_tables(self) -> bool:
        """Whether tables were made anew in the log that has been read: their rows must be read again."""
        record, size = self._asked.record, self.spool.statements
        if size == record.statements or stop_signals.is_wished():
            return False
        statements = statements_of_tables(self.spool, self.place.source, self._asked.tables, size)
        anew = record.made_anew(statements.places)
        statements.warn(anew, record)
        record = replace(record.without(anew), statements=size)
        store(self.spool, record)
        self._asked = replace(self._asked, record=record)
        return bool(anew)

    def _note_row_statements(self) -> bool:
        """Whether the log that has been read had statements instead of rows: their tables must be read again."""
        statements, _ = self.spool.row_statements()
        if not statements or stop_signals.is_wished():
            return False
        if self._statement_rounds == MOST_ROUNDS and not self._follows:
            return False  # those that come again and again are left to the next ingestion
        self._statement_rounds += 1
        changed = self._changed_by(statements)
        for name, why in sorted(changed.items()):
            warn_of_changed_values(name, why)
        record = self._asked.record.without(changed.keys())
        store(self.spool, record)
        self.spool.forget_row_statements()
        self._statements_looked_at = 0
        self._asked = replace(self._asked, record=record)
        return bool(changed)

    def _has_row_statements(self) -> bool:
        """Whether the engine has met such statements since this was last asked: events before may not be spooled."""
        statements, self._statements_looked_at = self.spool.row_statements(self._statements_looked_at)
        return bool(statements) and (
            self._statements_looked_at > _MOST_STATEMENTS or bool(self._changed_by(statements))
        )

    def _changed_by(self, statements: Sequence[RowStatement]) -> dict[str, str]:
        with connect(self._settings) as db:
            acting = acting_names(db, self._settings.database)
        changed = changed_tables(statements, self._asked.tables, acting)
        return {name: why for name, why in changed.items() if name in self._asked.record.complete}

    def _has_made_tables(self) -> bool:
        """Whether the engine has met statements that make tables anew; events before them may not be spooled yet."""
        if self.spool.statements == self._statements:
            return False
        self._statements = self.spool.statements
        statements = statements_of_tables(self.spool, self.place.source, self._asked.tables)
        return bool(self._asked.record.made_anew(statements.places))

    def _note_changed_layouts(self) -> bool:
        """Whether columns were changed so that tables are to be read again, as the log has been read up to there."""
        asked = self._asked
        if not asked.changed or stop_signals.is_wished():
            return False
        for name, why in asked.changed.items():
            warn_of_changed_values(name, why)
        record = asked.record.without(asked.changed.keys()).with_layouts(asked.layouts, asked.changed)
        record = replace(record, incomplete=record.incomplete.difference(asked.changed))
        store(self.spool, record)
        self._asked = replace(asked, record=record, changed={})
        return True

    def _read_up_to_changes(self) -> None:
        """Spool the log of tables that must be read again, so that no event of theirs comes that is older."""
        self._statements = 0
        self._statements_looked_at = 0
        if self._asked.changed or self._has_made_tables() or self._has_row_statements():
            self._read_log()
            self._note_made_tables()
            self._note_row_statements()
            self._note_changed_layouts()
            self.close()

    def follow(self) -> None:
        """Begin to spool all that comes."""
        self._read_first_tables()
        self._read_up_to_changes()
        self.read_later_tables()
        self._follows = True
        self._begin(follows=True)

    def _begin(self, *, follows: bool) -> Engine:
        fault_point("database.begin")
        asked = self._asked
        if missed := asked.record.begun.keys() - set(map(str, asked.followed)):
            # Their changes are left out from here on.
            self._asked = asked = replace(asked, record=asked.record.without_ranges(missed))
            store(self.spool, asked.record)
        settings = connector_settings(
            self.place.source,
            self.spool,
            asked.followed or asked.tables,
            asked.end,
            mariadb=asked.is_mariadb,
            follows=follows,
        )
        if self.spool.begins_anew:
            self.spool.end_snapshot_with(ends(asked.followed, self._settings.database))
        if not asked.followed:
            settings["snapshot.mode"] = "no_data"
        self._engine = Engine(settings, self._settings.kind, self.spool.folder / "engine.log")
        return self._engine

    def keep_running(self) -> None:
        """Start the engine again where it has ended because its database is away. Raises SmlError after a while.

        Called again and again while the database is followed.
        """
        now = time.monotonic()
        if not self._follows or now < self._next_start:
            return
        try:
            if self._engine is None:
                self.prepare(None)
                self._read_first_tables()
                self._read_up_to_changes()
                self._add_cascaded_rows()
                self.read_later_tables()
                self._begin(follows=True)
            self._engine_runs()
            if self._tables_changed(now):
                self.close()
                return
            if now - self._next_start > _SOUND_SECONDS:
                self._away_since = None
        except DatabaseAwayError:
            self._away_since = now if self._away_since is None else self._away_since
            if now - self._away_since > _PATIENCE_SECONDS:
                raise
            self.close()
            self._next_start = now + _PAUSE_SECONDS

    def _tables_changed(self, now: float) -> bool:
        """Whether there are other tables to read than when the engine began, or rows that the log does not name."""
        if self._has_made_tables() or self._has_row_statements() or self._cascades.have_acted(self._asked.followed):
            return True
        if now < self._next_listing:
            return False
        self._next_listing = now + _LISTING_SECONDS
        return has_other_tables(self.place, self._asked)

    def _engine_runs(self) -> None:
        """Raises SmlError where the engine has ended by itself."""
        assert self._engine is not None
        try:
            self._engine.require_running()
        except EngineFailure as failure:
            raise engine_error(self._settings, str(failure), self.place.source.name) from None

    def acknowledge(self, segments: Sequence[int]) -> None:
        """Confirm these segments, and all before them, to the database: all tables hold them."""
        number = max(segments, default=self.spool.newest)
        if self._engine is not None:
            self._engine.acknowledge(number)
        fault_point("database.confirmed")
        self.spool.clean(self._cascades.cleanable(number), self._settings.keep_days)

    def close(self) -> None:
        """End the engine."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.end()
