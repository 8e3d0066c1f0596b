"""Rows that differ, read again from the database and added to the log of its events. Owns that none overtakes another.

The rows are read by Debezium's engine, then the log is read to its end: a row that has no change in what the table has
not read yet is, at that position of the log, as it was read. There the rows become the next segment of the spool, as
events of a snapshot, or as deletes where the database has no such row. What the log had before comes before them, and
what it will have comes after: the next ingestion reads all of it in this order, like any event.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart, DifferentKeys
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES, CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.side import LONGEST, Key, Values, values_of
from sqlmesh_like.cdc.sources.database.comparison.unread_log import (
    UnreadRows,
    changes_in,
    keys_of_change,
    unread_rows,
)
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind, moment_text
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.row_snapshot import snapshot_lines
from sqlmesh_like.cdc.sources.database.server import Table, connected
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import UsageError
from sqlmesh_like.project.nodes import SourceTable

_EXACT = (Kind.WHOLE, Kind.TEXT, Kind.DECIMAL, Kind.DATE, Kind.MOMENT, Kind.BYTES)


@dataclass
class Repair:
    """What was added to the spool: rows that were read again, deletes of rows that the database does not have.

    `changed`: rows with changes in the log meanwhile, which the next ingestion brings anyway; `left`: rows that only
    the lake has, with nothing but a key, in a table with `order_by`.
    """

    rows: int = 0
    deletes: int = 0
    changed: int = 0
    left: int = 0

    def add(self, other: Repair) -> None:
        """Add what another source needed."""
        self.rows += other.rows
        self.deletes += other.deletes
        self.changed += other.changed
        self.left += other.left


@dataclass
class _Rows:
    """The rows of one part. `absent`: keys that the database lacks; `images`: rows of the lake that have an order."""

    different: DifferentKeys
    absent: frozenset[Key] = frozenset()
    images: dict[Key, dict[str, object]] = field(default_factory=dict)
    lines: list[tuple[Key | None, bytes]] = field(default_factory=list)

    @property
    def part(self) -> ComparedPart:
        return self.different.part

    @property
    def key(self) -> list[CanonicalColumn]:
        return [self.part.columns.database[index] for index in self.part.columns.key]


def why_not_repaired(result: TableComparison) -> UsageError | None:
    """Why the rows of a table that differ cannot be read again by key, if so."""
    table = result.table
    assert table.ingest is not None
    for different in result.keys:
        reason = _reason(table, different)
        if reason is not None:
            hint = f"sml ingest -s source:{table.source_name} --from earliest reads all of its tables again"
            return UsageError(f"{table.table} is not repaired by key: {reason}", location=table.declared_at, hint=hint)
    return None


_WITHOUT_INDEX = 500
"""Rows that are looked up where each lookup reads the whole table."""


def _reason(table: SourceTable, different: DifferentKeys) -> str | None:
    ingest, part = table.ingest, different.part
    assert ingest is not None
    if not re.fullmatch(r"\w+", f"{part.origin.schema or ''}{part.origin.name}", re.ASCII):
        return f"the name of {part.origin} has signs that Debezium's settings do not take"
    first = part.columns.database[part.columns.key[0]].name
    if len(different.keys) > _WITHOUT_INDEX and part.origin.key[:1] != (first,):
        return f"{len(different.keys)} rows differ, and {part.origin} has no primary key that begins with {first}"
    if ingest.deletes == "soft":
        return "it keeps deleted rows (`deletes: soft`), of which the database has no values"
    for index in part.columns.key:
        column = part.columns.database[index]
        if column.kind not in _EXACT or (column.kind is Kind.MOMENT and _depends_on_connection(column)):
            return f"its key has the column {column.name} of type {column.declared}"
    names = {name.lower() for name in part.columns.names}
    for name in ingest.order_by:
        if name.lower() not in names:
            return f"its `order_by` column {name} cannot be compared"
    return None


def _depends_on_connection(column: CanonicalColumn) -> bool:
    """Whether a literal of the type depends on the time zone of a connection, and Debezium's is its own."""
    return column.declared.startswith("timestamp") and "without time zone" not in column.declared


def add_repair(place: SourcePaths, results: Sequence[TableComparison], read_log: Callable[[], None]) -> Repair:
    """Read the rows that differ again and add them to the spool of their source. No engine may run.

    `read_log` spools the log to its end. Raises SmlError where database or log cannot be read.
    """
    spool, repair = spool_of(place), Repair()
    parts = [_Rows(different) for result in results for different in result.keys if different.keys]
    _ask(place, parts)
    _read(place, parts)
    read_log()
    lines: list[bytes] = []
    for rows in parts:
        changed = unread_rows(spool, rows.part.read, rows.part.origin, rows.key)
        own = list(_lines(rows, changed, database_of(place.source).database, repair))
        repair.changed += sum(key in changed for key in rows.different.keys)
        lines += own
    if lines:
        spool.append(lines)
    return repair


def _ask(place: SourcePaths, parts: Sequence[_Rows]) -> None:
    """Find out which of the rows the database has, and how the lake orders those that it lacks."""
    settings = database_of(place.source)
    dialect = DATABASES[settings.kind]
    with connected(settings) as connection:
        db = connection.execution_options(isolation_level="AUTOCOMMIT", no_parameters=True)
        for statement in dialect.settings:
            db.exec_driver_sql(statement)
        for rows in parts:
            there = values_of(
                rows.part.database_asked_by(lambda query: db.exec_driver_sql(query).fetchall()), rows.different.keys
            )
            rows.absent = frozenset(rows.different.keys) - there.keys()
    for rows in parts:
        ingest = rows.part.lake.table.ingest
        assert ingest is not None
        if rows.absent and ingest.order_by:
            with rows.part.lake.side(rows.part.columns) as lake:
                stored = values_of(lake, sorted(rows.absent, key=str))
            rows.images = {key: _image(rows.part, rows_of_key[-1]) for key, rows_of_key in stored.items()}


def _image(part: ComparedPart, stored: Values) -> dict[str, object]:
    """A row as the lake has it, without values that are shortened or of types whose text is not a value of an event."""
    return {
        there.name: _json_value(here, text)
        for there, here, text in zip(part.columns.database, part.columns.lake, stored, strict=True)
        if here.kind in _EXACT and (text is None or len(text) <= LONGEST)
    }


def _read(place: SourcePaths, parts: Sequence[_Rows]) -> None:
    """Read the rows that the database has, as events."""
    by_name = {(rows.part.origin.schema, rows.part.origin.name): rows for rows in parts}
    queries: dict[Table, str] = {}
    for rows in parts:
        if there := [key for key in rows.different.keys if key not in rows.absent]:
            side = rows.part.database
            query = f"select * from {side.relation} where {side.have(there)}"
            queries[rows.part.origin] = re.sub(r"[\r\n]", " ", query)  # a setting is one line
    if not queries:
        return
    for line in snapshot_lines(place, queries):
        for (schema, name), rows in by_name.items():
            for change in changes_in(line, Table(schema, name)):
                (key,) = keys_of_change(change, rows.key)
                rows.lines.append((key, line))


def _lines(rows: _Rows, changed: UnreadRows, database: str, repair: Repair) -> Iterator[bytes]:
    """The lines of a part that are certain at the end of the log."""
    wanted, seen = frozenset(rows.different.keys), set[Key]()
    for key, line in rows.lines:
        if key is None:  # of a type whose events are not read here: nothing of the table may have changed
            is_certain = not changed.has_others and not changed.keys
        else:
            seen.add(key)
            is_certain = key in wanted and key not in changed
        if is_certain:
            repair.rows += 1
            yield line
    ingest = rows.part.lake.table.ingest
    assert ingest is not None
    for key in sorted(rows.absent - seen, key=str):
        if key in changed:
            continue
        own = {column.name for column in rows.key}
        if ingest.order_by and all(v is None for name, v in rows.images.get(key, {}).items() if name not in own):
            repair.left += 1  # an event with nothing but the key has no order
            continue
        repair.deletes += 1
        yield _delete(rows, key, database)


def _delete(rows: _Rows, key: Key, database: str) -> bytes:
    own = [rows.part.columns.lake[index] for index in rows.part.columns.key]
    named = {there.name: _json_value(here, text) for there, here, text in zip(rows.key, own, key, strict=True)}
    origin = rows.part.origin
    source = {"db": database, "schema": origin.schema, "table": origin.name}
    before = {**rows.images.get(key, {}), **named}
    event = {"op": "d", "before": before, "after": None, "source": source, "ts_ms": time.time_ns() // 10**6}
    return json.dumps(event).encode() + b"\n"


def _json_value(column: CanonicalColumn, text: str | None) -> object:
    """The value of a canonical text as an event without a schema has it.

    >>> _json_value(CanonicalColumn("id", Kind.WHOLE, "bigint"), "7")
    7
    >>> _json_value(CanonicalColumn("at", Kind.MOMENT, "timestamp"), "1704067200000001")
    '2024-01-01T00:00:00.000001Z'
    """
    if text is None:
        return None
    match column.kind:
        case Kind.WHOLE:
            return bool(int(text)) if column.lake == "boolean" else int(text)
        case Kind.MOMENT:
            return f"{moment_text(text).replace(' ', 'T')}Z"
        case Kind.BYTES:
            return base64.b64encode(bytes.fromhex(text)).decode()
    return text
