"""Rows of a table that are read again by key. Owns how they are asked for, and the events that they become.

A row that the database has is an event of a snapshot, which Debezium's engine makes of it; one that it lacks is a
delete. Where in the log they stand is for their users to decide: `repair`, and `cascades`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlmesh_like.cdc.sources.database.comparison.compared_part import ComparedPart
from sqlmesh_like.cdc.sources.database.comparison.delete_events import delete_event
from sqlmesh_like.cdc.sources.database.comparison.dialects import DATABASES, CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.side import LONGEST, Key, Values, values_of
from sqlmesh_like.cdc.sources.database.comparison.unread_log import changes_in, keys_of_change
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.row_snapshot import snapshot_lines
from sqlmesh_like.cdc.sources.database.server import Table, connect
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import SourceTable

_EXACT = (Kind.WHOLE, Kind.TEXT, Kind.DECIMAL, Kind.DATE, Kind.MOMENT, Kind.BYTES)
_WITHOUT_INDEX = 500
"""Rows that are looked up where each lookup reads the whole table."""


@dataclass
class RowsByKey:
    """Rows of one part. `absent`: keys that the database lacks; `images`: rows of the lake, where they have an order.

    `lines`: an event for each row that the database has; without a key where that is not read from events.
    """

    part: ComparedPart
    keys: tuple[Key, ...]
    absent: frozenset[Key] = frozenset()
    images: dict[Key, dict[str, tuple[CanonicalColumn, str | None]]] = field(default_factory=dict)
    lines: list[tuple[Key | None, bytes]] = field(default_factory=list)

    @property
    def key(self) -> list[CanonicalColumn]:
        return [self.part.columns.database[index] for index in self.part.columns.key]

    @property
    def table(self) -> SourceTable:
        return self.part.lake.table

    def has_order(self, key: Key) -> bool:
        """Whether a delete of this row, with what the lake has of it, has an order where the table has one."""
        own = {column.name for column in self.key}
        ingest = self.table.ingest
        assert ingest is not None
        image = self.images.get(key, {})
        return not ingest.order_by or any(text is not None for name, (_, text) in image.items() if name not in own)

    def delete(self, key: Key, database: str) -> bytes:
        """The line of an event that deletes a row."""
        own = [self.part.columns.lake[index] for index in self.part.columns.key]
        named = {there.name: (here, text) for there, here, text in zip(self.key, own, key, strict=True)}
        return delete_event(self.part.origin, database, {**self.images.get(key, {}), **named})


def why_not_by_key(table: SourceTable, part: ComparedPart, count: int) -> str | None:
    """Why so many rows of a table cannot be read again by key, if so."""
    ingest = table.ingest
    assert ingest is not None
    if not re.fullmatch(r"\w+", f"{part.origin.schema or ''}{part.origin.name}", re.ASCII):
        return f"the name of {part.origin} has signs that Debezium's settings do not take"
    first = part.columns.database[part.columns.key[0]].name
    if count > _WITHOUT_INDEX and part.origin.key[:1] != (first,):
        return f"{count} rows differ, and {part.origin} has no primary key that begins with {first}"
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


def find_absent(place: SourcePaths, parts: Sequence[RowsByKey]) -> None:
    """Find out which of the rows the database has. Raises SmlError where it cannot be asked."""
    settings = database_of(place.source)
    dialect = DATABASES[settings.kind]
    with connect(settings) as connection:
        db = connection.execution_options(isolation_level="AUTOCOMMIT", no_parameters=True)
        for statement in dialect.settings:
            db.exec_driver_sql(statement)
        for rows in parts:
            there = values_of(
                rows.part.database_asked_by(lambda query: db.exec_driver_sql(query).fetchall()), rows.keys
            )
            rows.absent = frozenset(rows.keys) - there.keys()


def read_images(rows: RowsByKey, keys: Sequence[Key]) -> None:
    """Read from the lake how it orders rows, if it does. Raises SmlError where it cannot be read."""
    ingest = rows.table.ingest
    assert ingest is not None
    if keys and ingest.order_by:
        with rows.part.lake.side(rows.part.columns) as lake:
            stored = values_of(lake, keys)
        rows.images = {key: _image(rows.part, rows_of_key[-1]) for key, rows_of_key in stored.items()}


def _image(part: ComparedPart, stored: Values) -> dict[str, tuple[CanonicalColumn, str | None]]:
    """A row as the lake has it, without values that are shortened or of types whose text is not a value of an event."""
    return {
        there.name: (here, text)
        for there, here, text in zip(part.columns.database, part.columns.lake, stored, strict=True)
        if here.kind in _EXACT and (text is None or len(text) <= LONGEST)
    }


def read_present(place: SourcePaths, parts: Sequence[RowsByKey]) -> None:
    """Read the rows that the database has as events, all of them at one moment. Raises SmlError where it cannot."""
    by_name = {(rows.part.origin.schema, rows.part.origin.name): rows for rows in parts}
    queries: dict[Table, str] = {}
    for rows in parts:
        if there := [key for key in rows.keys if key not in rows.absent]:
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
