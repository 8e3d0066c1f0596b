"""The rows of a table that the log has changes of which the table has not read yet.

Where a database and the lake differ in such a row, that shows nothing: the lake will have the change. Where the log up
to a position after the comparison has none, the row has been as it is since before the table's position.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sqlmesh_like.cdc.sources.catch_up_queue import tables_behind
from sqlmesh_like.cdc.sources.database.comparison.dialects import CanonicalColumn
from sqlmesh_like.cdc.sources.database.comparison.side import Key
from sqlmesh_like.cdc.sources.database.comparison.value_kinds import Kind
from sqlmesh_like.cdc.sources.database.server import Table
from sqlmesh_like.cdc.sources.database.spool import Spool, number_of
from sqlmesh_like.cdc.sources.offset_range import Files
from sqlmesh_like.cdc.sources.query_log import read_query_log
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.project.nodes import SourceTable


@dataclass(frozen=True)
class UnreadRows:
    """The keys of the changes that a table has not read; `has_others`: also of some whose keys are not known."""

    keys: frozenset[Key]
    has_others: bool = False

    def __contains__(self, key: Key) -> bool:
        return self.has_others or key in self.keys


def read_segments(place: SourcePaths, table: SourceTable) -> frozenset[int]:
    """The segments of the spool that a table has read. To be asked before the table's rows."""
    log = read_query_log(place.checkpoint)
    if log is None:
        return frozenset()
    last = max(log.log_ids.values())
    numbers = {number_of(unquote(file.uri)) for file in log.files if file.log_id <= last}
    for mark in tables_behind(place).get(table.name, ()):
        if isinstance(mark.extent, Files):
            numbers -= {number_of(unquote(path)) for _, path in mark.extent.files}
    return frozenset(numbers)


def unread_rows(spool: Spool, read: frozenset[int], origin: Table, key: Sequence[CanonicalColumn]) -> UnreadRows:
    """The rows of `origin` that the other segments have changes of. `key`: its columns in the database."""
    keys: set[Key] = set()
    has_others = False
    for path in sorted((spool.folder / "log").glob("*.gz")):
        if number_of(path) in read:
            continue
        for change in changes_of(path, origin):
            row_keys = list(keys_of_change(change, key))
            has_others = has_others or None in row_keys or not row_keys
            keys.update(each for each in row_keys if each is not None)
    return UnreadRows(frozenset(keys), has_others)


def changes_of(path: Path, origin: Table) -> Iterator[dict[str, object]]:
    """The events of a table in a segment."""
    with gzip.open(path, "rb") as lines:
        for line in lines:
            yield from changes_in(line, origin)


def changes_in(line: bytes, origin: Table) -> Iterator[dict[str, object]]:
    """The event of a line, if it is one of this table."""
    mark = json.dumps(origin.name).encode()
    if origin.name.isascii() and mark not in line:  # each line has a schema, which takes long to read
        return
    message = json.loads(line.partition(b"\t")[0])
    change = message.get("payload", message)
    source = change.get("source") or {}
    if source.get("table") == origin.name and source.get("schema") == origin.schema:
        yield change


def keys_of_change(change: dict[str, object], key: Sequence[CanonicalColumn]) -> Iterable[Key | None]:
    """The keys before and after a change; None: there is one that is not known. A truncate has none."""
    for image in ("before", "after"):
        row = change.get(image)
        if isinstance(row, dict):
            texts = [event_text(row.get(column.name), column) for column in key]
            yield None if None in texts else tuple(texts)


def event_text(value: object, column: CanonicalColumn) -> str | None:
    """The canonical text of a value of an event; None where it is NULL, or of a type that is not read here.

    An unsigned `bigint` is in events as the bytes of the number.

    >>> whole, text = CanonicalColumn("n", Kind.WHOLE, "int", "int(11)"), CanonicalColumn("s", Kind.TEXT, "string")
    >>> large = CanonicalColumn("n", Kind.WHOLE, "decimal(20,0)", "bigint(20) unsigned")
    >>> event_text(7, whole), event_text("a", text), event_text("AMg=", large), event_text("AQ==", whole)
    ('7', 'a', '200', None)
    """
    if column.kind is Kind.WHOLE:
        if isinstance(value, int):
            return str(int(value))
        is_large = column.declared.startswith("bigint") and "unsigned" in column.declared
        if is_large and isinstance(value, str):
            return str(int.from_bytes(base64.b64decode(value), "big", signed=True))
    return value if column.kind is Kind.TEXT and isinstance(value, str) else None
