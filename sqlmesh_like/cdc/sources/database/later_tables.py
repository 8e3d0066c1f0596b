"""Tables that are read later than others of their source, or once more. Owns that no row and no change of them is lost.

Their rows are read apart from the log, and added to the spool at the position that it has reached; from there on their
changes are read with those of all others. So the log repeats changes that the rows have already, each key ends with its
last change, and a key without one has the row that was read. In PostgreSQL they are published before their rows are
read: what changes in between is in the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, publication_of
from sqlmesh_like.cdc.sources.database.key_ranges import estimated_rows, large_tables, next_range
from sqlmesh_like.cdc.sources.database.load_progress import LoadProgress
from sqlmesh_like.cdc.sources.database.read_tables import ReadRows, ReadTables, store
from sqlmesh_like.cdc.sources.database.readiness import require_keys
from sqlmesh_like.cdc.sources.database.row_snapshot import row_segments
from sqlmesh_like.cdc.sources.database.server import Table, connect, publish_tables, published_tables
from sqlmesh_like.cdc.sources.database.spool import begins, ends, number_of, spool_of, write_lines
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.fault_points import fault_point

if TYPE_CHECKING:
    import sqlalchemy as sa


def add_rows(place: SourcePaths, tables: Sequence[Table], record: ReadTables, places: Mapping[str, str]) -> ReadTables:
    """Add all rows of these tables to the spool and to its record, which is returned. No engine may run.

    `places`: where in the log that was read tables were made anew.

    Of a table that the spool has had before, rows of the lake that are not read again go: changes since are missing. A
    large table is read in ranges of its key, and where the record has some of them, without missing a change since,
    from there on; none of its rows is in the spool before all have been read. After a kill other tables are read once
    more. Raises SmlError where they cannot be read.
    """
    spool, settings = spool_of(place), database_of(place.source)
    outdated = [table for table in tables if str(table) in record.outdated]
    with connect(settings) as db:
        require_keys(db, place.source, tables)
        hidden = _publish(db, publication_of(place.source, spool), tables) if settings.kind == "postgresql" else ()
        begun = {str(table) for table in tables if _goes_on(table, record) and table not in hidden}
        large = large_tables(db, settings, [table for table in tables if str(table) not in begun])
    divided = [table for table in tables if str(table) in large | begun]
    for table in divided:
        record = _read_ranges(
            place, table, record if str(table) in begun else _begin_ranges(place, table, record, places)
        )
    if whole := [table for table in tables if table not in divided]:
        with row_segments(place, dict.fromkeys(whole)) as segments:
            record = _add_whole(place, whole, segments, record, places)
    record = record.with_partial_rows(frozenset(map(str, divided)))
    store(spool, record)
    for table in divided:
        for segment in sorted(spool.ranges_of(table).glob("*.gz")):
            spool.append_file(segment)
    if outdated:
        spool.append(ends(outdated, settings.database))
    fault_point("database.read_again")
    record = record.completed(frozenset(map(str, tables)))
    store(spool, record)
    return record


def _publish(db: sa.Connection, publication: str, tables: Sequence[Table]) -> Sequence[Table]:
    """Have PostgreSQL publish the changes of these tables; returns those of which it did not."""
    published = published_tables(db, publication)
    hidden = [each for each in tables if published is not None and str(each) not in published]
    if hidden:
        publish_tables(db, publication, hidden)
    return hidden


def _add_whole(
    place: SourcePaths, tables: Sequence[Table], segments: Sequence[Path], record: ReadTables, places: Mapping[str, str]
) -> ReadTables:
    """Add segments with all rows of tables. After a kill the lake may have some of them, which may be gone by then."""
    spool, names = spool_of(place), frozenset(map(str, tables))
    outdated = [table for table in tables if str(table) in record.outdated]
    record = record.without(names).made_at(names, places)
    store(spool, record)
    if outdated:
        spool.append(begins(outdated, database_of(place.source).database))
    for segment in segments:
        spool.append_file(segment)
    return record


def _goes_on(table: Table, record: ReadTables) -> bool:
    """Whether the rows after those that have been read are all that is missing of a table."""
    rows = record.begun.get(str(table))
    return rows is not None and table.key[:1] == (rows.key,)


def _begin_ranges(place: SourcePaths, table: Table, record: ReadTables, places: Mapping[str, str]) -> ReadTables:
    """The record before the first range of a table is read, and whatever was read of it before removed."""
    spool, name = spool_of(place), str(table)
    record = record.without_ranges([name]).made_at([name], places)
    store(spool, record)
    folder = spool.ranges_of(table)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name in record.outdated:
        write_lines(folder / "000000000000.gz", begins([table], database_of(place.source).database))
    return record


def _read_ranges(place: SourcePaths, table: Table, record: ReadTables) -> ReadTables:
    """Read the rows of a large table that the record does not have yet, one range after the other."""
    spool, settings, name = spool_of(place), database_of(place.source), str(table)
    before, folder = record.begun.get(name), spool.ranges_of(table)
    progress = LoadProgress(name, before=before.rows if before else 0)
    rows = 0
    while before is None or before.upto is not None:
        with connect(settings) as db:
            progress.total = estimated_rows(db, table)
            part = next_range(db, settings, table, before.upto if before else None)
        on_rows = partial(progress.note, rows)
        with row_segments(place, {table: part.query}, on_rows) as segments:
            number = max(map(number_of, folder.glob("*.gz")), default=0)
            for segment in segments:
                number += 1
                os.replace(segment, folder / f"{number:012d}.gz")
        rows += settings.rows_per_query
        before = ReadRows(part.key, part.upto, progress.before + rows)
        record = record.with_rows(name, before)
        store(spool, record)
        fault_point("database.range")
    return record


def add_rows_of_partitions(
    place: SourcePaths, queries: Mapping[Table, str], record: ReadTables, places: Mapping[str, str]
) -> ReadTables:
    """Add the rows that these queries give to the spool, and the `places` of their tables to its record.

    The tables are published: changes of these rows since are in the log. Done again after a kill.
    """
    spool = spool_of(place)
    with row_segments(place, queries) as segments:
        for segment in segments:
            spool.append_file(segment)
    record = record.completed(frozenset(map(str, queries)), places)
    store(spool, record)
    return record
