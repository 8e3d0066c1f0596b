"""The record of which tables of a database have been read from their first row. Owns its file.

The log alone does not have the rows that a table had before: a table that is wanted later needs a snapshot of its own,
and so does one that was not read for a while.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.schema_changes.table_layouts import TableLayout, layout_from
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool, replace_file
from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import Source


@dataclass(frozen=True)
class ReadRows:
    """How far the rows of a table have been read, by its column `key`: up to a literal; None: all of them.

    `rows`: how many, about.
    """

    key: str
    upto: str | None
    rows: int


@dataclass(frozen=True)
class ReadTables:
    """Tables of a database, by name (`schema.table` in PostgreSQL).

    `complete`: the spool has their rows and all changes since, up to its position. `outdated`: it has had rows of them,
    but not all changes since. `made`: where in the log each was made anew (`schema_history`) when it was read, or the
    partitions that it had (`partitions`), by its name in lower case. `layouts`: the columns that a table of PostgreSQL
    had, at a moment up to which its log had been read before its rows were. `statements`: how much of the record of
    statements (`schema_history`) is of the log that the spool has: the engine notes a statement before the events that
    precede it are spooled. `begun`: what has been read of the rows of tables that are not complete; the spool has not
    missed changes of them since. `incomplete`: tables that were not logged as they have to be at some moment since they
    were read.
    """

    database: str
    complete: frozenset[str]
    outdated: frozenset[str] = frozenset()
    made: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, TableLayout] = field(default_factory=dict)
    statements: int = 0
    begun: Mapping[str, ReadRows] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()

    def without(self, names: Collection[str]) -> ReadTables:
        """These tables must be read again."""
        record = replace(self, complete=self.complete.difference(names), outdated=self.outdated.union(names))
        return record.without_ranges(names)

    def without_ranges(self, names: Collection[str]) -> ReadTables:
        """Of these tables, which are not complete, all rows must be read again."""
        return replace(self, begun={name: rows for name, rows in self.begun.items() if name not in names})

    def with_partial_rows(self, names: Collection[str]) -> ReadTables:
        """The spool is about to get rows of these tables, which are not complete before it has all."""
        return replace(self, outdated=self.outdated.union(names))

    def with_rows(self, name: str, rows: ReadRows) -> ReadTables:
        """Of a table that is not complete these rows have been read."""
        return replace(self, begun={**self.begun, name: rows})

    def made_anew(self, places: Mapping[str, str]) -> frozenset[str]:
        """The complete tables that were made anew since they were read."""
        return frozenset(
            name for name in self.complete if places.get(name.lower()) not in (None, self.made.get(name.lower()))
        )

    def followed(self, names: Collection[str]) -> ReadTables:
        """Of the complete tables only these are read on; others miss changes from now on."""
        return self.without(self.complete.difference(names))

    def completed(self, names: Collection[str], places: Mapping[str, str] = MappingProxyType({})) -> ReadTables:
        """These tables have been read. `places`: where in the log tables had been made anew before."""
        record = replace(self, complete=self.complete.union(names), outdated=self.outdated.difference(names))
        return record.without_ranges(names).made_at(names, places)

    def made_at(self, names: Collection[str], places: Mapping[str, str]) -> ReadTables:
        """The rows of these tables are read after they were made anew at these places."""
        made = {name.lower(): places[name.lower()] for name in names if name.lower() in places}
        return replace(self, made={**self.made, **made})

    def with_layouts(self, layouts: Mapping[str, TableLayout], names: Collection[str]) -> ReadTables:
        """Take over the layouts that these tables have now, with what is known of columns that they had before."""
        known = dict(self.layouts)
        for name in {each.lower() for each in names} & layouts.keys():
            before, now = known.get(name), layouts[name]
            known[name] = now if before is None else now.after(before)
        return replace(self, layouts=known)


def begin(
    spool: Spool,
    source: Source,
    tables: Iterable[Table],
    partitions: Mapping[str, str] = MappingProxyType({}),
    layouts: Mapping[str, TableLayout] = MappingProxyType({}),
) -> ReadTables:
    """Record that the first snapshot will read these tables, with the partitions and the layouts that they have.

    What another one has read before, and this one does not, stays outdated: the lake may have its rows.
    """
    record = ReadTables(_database(source), frozenset(map(str, tables)), made=partitions)
    if _file(spool).exists() and (former := _parse_read_tables(spool)).database == record.database:
        outdated = (former.outdated | former.complete) - record.complete
        record = replace(record, outdated=outdated, layouts=former.layouts)
    record = record.with_layouts(layouts, record.complete)
    store(spool, record)
    return record


def load_read_tables(spool: Spool, source: Source) -> ReadTables:
    """The record of a spool that has a position. Raises IngestError where it is of another database."""
    record = _parse_read_tables(spool)
    if record.database != _database(source):
        raise IngestError(
            f"source {source.name!r} has read {record.database} before, not {_database(source)}",
            location=source.declared_at,
            hint=f"sml ingest -s source:{source.name} --from earliest reads all of its tables again",
        )
    return record


def _parse_read_tables(spool: Spool) -> ReadTables:
    known = json.loads(_file(spool).read_text(encoding="utf-8"))
    outdated, made = known.get("outdated", ()), known.get("made", {})
    layouts = {name: layout_from(each) for name, each in known.get("layouts", {}).items()}
    names, statements = frozenset(known["tables"]), known.get("statements", 0)
    begun = {name: ReadRows(**rows) for name, rows in known.get("begun", {}).items()}
    incomplete = frozenset(known.get("incomplete", ()))
    return ReadTables(known["database"], names, frozenset(outdated), made, layouts, statements, begun, incomplete)


def store(spool: Spool, record: ReadTables) -> None:
    """Replace the record."""
    content = {
        "database": record.database,
        "tables": sorted(record.complete),
        "outdated": sorted(record.outdated),
        "made": dict(record.made),
        "layouts": {name: each.to_json() for name, each in sorted(record.layouts.items())},
        "statements": record.statements,
        "incomplete": sorted(record.incomplete),
        "begun": {name: asdict(rows) for name, rows in sorted(record.begun.items())},
    }
    replace_file(_file(spool), json.dumps(content).encode())


def _file(spool: Spool) -> Path:
    return spool.folder / "tables.json"


def _database(source: Source) -> str:
    settings = database_of(source)
    return f"{settings.kind}:{settings.database}"
