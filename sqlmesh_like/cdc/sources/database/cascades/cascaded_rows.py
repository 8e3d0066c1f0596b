"""What foreign keys have done to tables of a source since this was asked last. Owns the record of what was looked at.

The record is written last: after a kill the same segments are looked at again, and the same rows are read again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.cascades.affected_rows import affected_rows
from sqlmesh_like.cdc.sources.database.cascades.firing import Fired, fired_keys
from sqlmesh_like.cdc.sources.database.cascades.foreign_keys import (
    ForeignKey,
    descendants,
    foreign_keys,
    is_read,
    key_from,
    unread_parent_remedy,
    unread_parent_text,
    unread_parents,
)
from sqlmesh_like.cdc.sources.database.cascades.read_again import read_again
from sqlmesh_like.cdc.sources.database.cascades.row_images import RowImages
from sqlmesh_like.cdc.sources.database.comparison.compared_part import compared_part
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES
from sqlmesh_like.cdc.sources.database.comparison.rows_by_key import why_not_by_key
from sqlmesh_like.cdc.sources.database.connector_settings import database_of, declared_table
from sqlmesh_like.cdc.sources.database.logged_rows import Problem
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables, store
from sqlmesh_like.cdc.sources.database.server import Table, connect
from sqlmesh_like.cdc.sources.database.spool import number_of, replace_file, spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import SmlError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.project.nodes import DatabaseSettings, SourceTable

if TYPE_CHECKING:
    import sqlalchemy as sa

_log = logging.getLogger("sqlmesh_like.cdc")
MOST_ROUNDS = 10
"""How often a log is looked at that goes on meanwhile; the next ingestion does the rest."""


@dataclass(frozen=True)
class _Looked:
    """What was looked at. `segment`: up to which; `last`: the delete that ends it; `statements`: `Spool.statements`.

    `keys`: those that the database had, of which some may have acted and be gone since.
    """

    segment: int
    last: str
    statements: int
    keys: tuple[ForeignKey, ...]


class CascadedRows:
    """The rows of one source that foreign keys change by themselves. PostgreSQL has such changes in its log."""

    def __init__(self, place: SourcePaths) -> None:
        self.place, self.spool = place, spool_of(place)
        self.rounds = 0
        self._settings: DatabaseSettings = database_of(place.source)
        self._looked = _Looked(0, "", 0, ())
        self._present: tuple[ForeignKey, ...] = ()
        self._warned: set[ForeignKey] = set()

    @property
    def _is_logged(self) -> bool:
        return self._settings.kind == "postgresql"

    @property
    def _file(self) -> Path:
        return self.spool.folder / "cascades.json"

    def prepare(self, db: sa.Connection, tables: Sequence[Table], record: ReadTables) -> ReadTables:
        """Learn which keys there are; what has to be read again because this was not known is in the result's record.

        Warns of parents that are not read.
        """
        if self._is_logged:
            return record
        names = [str(table) for table in tables]
        present = foreign_keys(db, self._settings.database, names)
        if self._file.exists():
            known = json.loads(self._file.read_text(encoding="utf-8"))
            self._looked = _Looked(
                known["segment"], known["last"], known["statements"], tuple(map(key_from, known["keys"]))
            )
        else:
            children = {key.child.lower() for key in present if is_read(key, self._settings.database, names)}
            missed = {name for name in record.complete if name.lower() in children}
            if self.spool.has_position and missed:
                text = "foreign keys may have changed rows of %s without a word in the log: it is read again"
                _log.warning(text, ", ".join(sorted(missed)))
                record = record.without(missed)
                store(self.spool, record)
            self._looked = replace(self._looked, segment=self.spool.newest if self.spool.has_position else 0)
        self._present = present
        self._note(statements=self.spool.statements, keys=_union(self._looked.keys, present))
        for key in unread_parents(present, self._settings.database, names):
            if key not in self._warned:
                self._warned.add(key)
                text = unread_parent_text(key, self._settings.database)
                _log.warning("%s (%s)", text, unread_parent_remedy(key, self._settings.database))
        return record

    def with_children(self, record: ReadTables, tables: Sequence[Table]) -> ReadTables:
        """The record in which tables that follow others are read again with them.

        Which rows a table has lost while its changes were not read is not known, nor which rows of others went then.
        """
        missing = [str(table) for table in tables if str(table) not in record.complete]
        children = descendants(self._looked.keys, missing)
        return record.without({name for name in record.complete if name.lower() in children})

    def have_acted(self, followed: Sequence[Table]) -> bool:
        """Whether events of the spool that were not looked at make keys of these tables act.

        Raises SmlError where the database cannot be asked, after statements that may have changed its keys.
        """
        if self._is_logged or not self.spool.has_position:
            return False
        self._read_keys_again(followed)
        segments = self._segments()
        if not segments:
            return False
        fired, last = self._keys_that_fired(segments, followed)
        if not fired:
            self._note(segment=number_of(segments[-1]), last=last)
        return bool(fired)

    def add_rows(self, followed: Sequence[Table], record: ReadTables) -> ReadTables:
        """Add the rows that keys may have changed to the spool. No engine may run.

        Tables that must be read as a whole instead are not complete any more in the record, which is returned. Raises
        SmlError where the database cannot be read.
        """
        self.rounds += 1
        segments = self._segments()
        fired, last = self._keys_that_fired(segments, followed)
        window = frozenset(map(number_of, segments))
        tables = self._known_rows(followed, fired, window)
        affected = affected_rows(fired, self._keys(followed), tables)
        known = {name: rows for name, rows in tables.items() if isinstance(rows, RowImages)}
        done = read_again(self.place, affected.keys, known)
        record = self._without(record, followed, {**affected.whole, **done.whole})
        fault_point("database.cascades_read")
        if done.lines:
            self.spool.append(done.lines)
            text = "foreign keys have changed rows: %d were read again, %d are gone"
            _log.info(text, done.rows, done.deletes)
        fault_point("database.cascades_added")
        self._note(segment=self.spool.newest, last=last)
        return record

    def forget_former_keys(self) -> None:
        """Forget keys that were gone before the log ended that has been looked at."""
        if self._file.exists():
            self._note(keys=self._present)

    def cleanable(self, number: int) -> int:
        """Up to which segment the spool may be cleaned, which all tables have up to this one."""
        return number if self._is_logged else min(number, self._looked.segment + 1)

    def _segments(self) -> list[Path]:
        every = sorted((self.spool.folder / "log").glob("*.gz"))
        return [path for path in every if number_of(path) > self._looked.segment]

    def _keys(self, followed: Iterable[Table]) -> list[ForeignKey]:
        """The keys between these tables."""
        names = {str(table) for table in followed}
        children = {name.lower() for name in names}
        keys = (key for key in self._looked.keys if key.child.lower() in children)
        return [key for key in keys if is_read(key, self._settings.database, names)]

    def _keys_that_fired(
        self, segments: Sequence[Path], followed: Sequence[Table]
    ) -> tuple[Mapping[ForeignKey, Fired], str]:
        keys = self._keys(followed)
        return fired_keys(segments, keys, self._looked.last) if keys else ({}, "")

    def _read_keys_again(self, followed: Sequence[Table]) -> None:
        """A statement may have added keys."""
        if self.spool.statements == self._looked.statements:
            return
        statements = self.spool.statements
        with connect(self._settings) as db:
            self._present = _union(self._present, foreign_keys(db, self._settings.database, list(map(str, followed))))
        self._note(statements=statements, keys=_union(self._looked.keys, self._present))

    def _note(self, **changes: object) -> None:
        looked = replace(self._looked, **changes)  # type: ignore[arg-type]
        if looked == self._looked and self._file.exists():
            return
        self._looked = looked
        content = {
            "segment": looked.segment,
            "last": looked.last,
            "statements": looked.statements,
            "keys": [key.to_json() for key in looked.keys],
        }
        replace_file(self._file, json.dumps(content).encode())

    def _known_rows(
        self, followed: Sequence[Table], fired: Iterable[ForeignKey], window: frozenset[int]
    ) -> dict[str, RowImages | str]:
        """What is known of the rows of all tables that may be concerned, or why that is not known by key."""
        keys, source = self._keys(followed), self.place.source
        concerned = {key.child.lower() for key in fired} | descendants(keys, {key.child for key in fired})
        known: dict[str, RowImages | str] = {}
        with connect(self._settings) as connection:
            db = connection.execution_options(isolation_level="AUTOCOMMIT", no_parameters=True)
            for statement in DATABASES[self._settings.kind].settings:
                db.exec_driver_sql(statement)
            for table in followed:
                declared = declared_table(source, table)
                assert source.ingest is not None
                if str(table).lower() not in concerned or (declared is None and not source.ingest.discover):
                    continue
                shares = [each for each in followed if declared_table(source, each) is declared]
                known[str(table).lower()] = (
                    "it has not been ingested yet"
                    if declared is None
                    else _row_images(self, declared, table, keys, window, db, is_shared=len(shares) > 1)
                )
        return known

    def _without(self, record: ReadTables, followed: Sequence[Table], whole: Mapping[str, str]) -> ReadTables:
        """The record without tables that are read as a whole; those that share a table of the lake go together."""
        if not whole:
            return record
        for name, reason in whole.items():
            _log.warning("all rows of %s are read again, as foreign keys have acted: %s", name, reason)
        source = self.place.source
        by_name = {str(table): declared_table(source, table) for table in followed}
        emptied = {id(each) for name, each in by_name.items() if each is not None and name.lower() in whole
                   and each.ingest is not None and each.ingest.origin is None}  # fmt: skip
        record = record.without(
            {name for name, each in by_name.items() if name.lower() in whole or id(each) in emptied}
        )
        store(self.spool, record)
        return record


def unread_parent_notes(db: sa.Connection, settings: DatabaseSettings, tables: Sequence[Table]) -> tuple[Problem, ...]:
    """What is worth knowing of foreign keys of these tables."""
    if settings.kind == "postgresql":
        return ()
    own, names = settings.database, [str(table) for table in tables]
    keys = unread_parents(foreign_keys(db, own, names), own, names)
    return tuple(Problem(unread_parent_text(key, own), unread_parent_remedy(key, own)) for key in keys)


def _row_images(
    rows: CascadedRows,
    declared: SourceTable,
    table: Table,
    keys: Sequence[ForeignKey],
    window: frozenset[int],
    db: sa.Connection,
    *,
    is_shared: bool,
) -> RowImages | str:
    assert declared.ingest is not None
    if is_shared and declared.ingest.origin is None:
        return "other tables share its table in the lake, without `origin`"
    try:
        part = compared_part(
            rows.place, declared, table, lambda query: db.exec_driver_sql(query).fetchall(), perhaps_new=True
        )
    except SmlError as error:
        return str(error)
    if why := why_not_by_key(declared, part, 1):
        return why
    name = str(table).lower()
    own = [column for key in keys if key.child.lower() == name for column in key.columns]
    own += [column for key in keys if key.parent.lower() == name for column in key.referenced]
    own += [part.columns.database[index].name.lower() for index in part.columns.key]
    return RowImages(rows.spool, part, tuple(dict.fromkeys(own)), window)


def _union(known: Collection[ForeignKey], present: Collection[ForeignKey]) -> tuple[ForeignKey, ...]:
    return tuple(dict.fromkeys((*present, *known)))
