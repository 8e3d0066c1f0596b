"""Rows that differ, read again from the database and added to the log of its events. Owns that none overtakes another.

The rows are read by Debezium's engine, then the log is read to its end: a row that has no change in what the table has
not read yet is, at that position of the log, as it was read. There the rows become the next segment of the spool, as
events of a snapshot, or as deletes where the database has no such row. What the log had before comes before them, and
what it will have comes after: the next ingestion reads all of it in this order, like any event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.rows_by_key import (
    RowsByKey,
    find_absent,
    read_images,
    read_present,
    why_not_by_key,
)
from sqlmesh_like.cdc.sources.database.comparison.side import Key
from sqlmesh_like.cdc.sources.database.comparison.unread_log import UnreadRows, unread_rows
from sqlmesh_like.cdc.sources.database.connector_settings import database_of
from sqlmesh_like.cdc.sources.database.spool import spool_of
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.errors import UsageError


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


def why_not_repaired(result: TableComparison) -> UsageError | None:
    """Why the rows of a table that differ cannot be read again by key, if so."""
    table = result.table
    assert table.ingest is not None
    for different in result.keys:
        reason = why_not_by_key(table, different.part, len(different.keys))
        if reason is not None:
            hint = f"sml ingest -s source:{table.source_name} --from earliest reads all of its tables again"
            return UsageError(f"{table.table} is not repaired by key: {reason}", location=table.declared_at, hint=hint)
    return None


def add_repair(place: SourcePaths, results: Sequence[TableComparison], read_log: Callable[[], None]) -> Repair:
    """Read the rows that differ again and add them to the spool of their source. No engine may run.

    `read_log` spools the log to its end. Raises SmlError where database or log cannot be read.
    """
    spool, repair = spool_of(place), Repair()
    parts = [
        RowsByKey(different.part, different.keys) for result in results for different in result.keys if different.keys
    ]
    find_absent(place, parts)
    for rows in parts:
        read_images(rows, sorted(rows.absent, key=str))
    read_present(place, parts)
    read_log()
    lines: list[bytes] = []
    for rows in parts:
        changed = unread_rows(spool, rows.part.read, rows.part.origin, rows.key)
        own = list(_lines(rows, changed, database_of(place.source).database, repair))
        repair.changed += sum(key in changed for key in rows.keys)
        lines += own
    if lines:
        spool.append(lines)
    return repair


def _lines(rows: RowsByKey, changed: UnreadRows, database: str, repair: Repair) -> Iterator[bytes]:
    """The lines of a part that are certain at the end of the log."""
    wanted, seen = frozenset(rows.keys), set[Key]()
    for key, line in rows.lines:
        if key is None:  # of a type whose events are not read here: nothing of the table may have changed
            is_certain = not changed.has_others and not changed.keys
        else:
            seen.add(key)
            is_certain = key in wanted and key not in changed
        if is_certain:
            repair.rows += 1
            yield line
    for key in sorted(rows.absent - seen, key=str):
        if key in changed:
            continue
        if not rows.has_order(key):
            repair.left += 1  # an event with nothing but the key has no order
            continue
        repair.deletes += 1
        yield rows.delete(key, database)
