"""Tables that are read later than others of their source, or once more. Owns that no row and no change of them is lost.

Their rows are read apart from the log, and added to the spool at the position that it has reached; from there on their
changes are read with those of all others. So the log repeats changes that the rows have already, each key ends with its
last change, and a key without one has the row that was read. In PostgreSQL they are published before their rows are
read: what changes in between is in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlmesh_like.cdc.sources.database.connector_settings import database_of, publication_of
from sqlmesh_like.cdc.sources.database.read_tables import ReadTables, store
from sqlmesh_like.cdc.sources.database.readiness import require_keys
from sqlmesh_like.cdc.sources.database.row_snapshot import row_segments
from sqlmesh_like.cdc.sources.database.server import Table, connected, publish_tables, published_tables
from sqlmesh_like.cdc.sources.database.spool import spool_of, truncates
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.fault_points import fault_point


def add_rows(place: SourcePaths, tables: Sequence[Table], record: ReadTables, places: Mapping[str, str]) -> ReadTables:
    """Add all rows of these tables to the spool and to its record, which is returned. No engine may run.

    `places`: where in the log that was read tables were made anew.

    Of a table that the spool has had before, all rows of the lake go first: changes since are missing. After a kill the
    tables count as such. Raises SmlError where they cannot be read.
    """
    spool, settings = spool_of(place), database_of(place.source)
    outdated = [table for table in tables if str(table) in record.outdated]
    names = frozenset(map(str, tables))
    with connected(settings) as db:
        require_keys(db, place.source, tables)
        if settings.kind == "postgresql":
            publication = publication_of(place.source, spool)
            published = published_tables(db, publication)
            if published is not None and (hidden := [each for each in tables if str(each) not in published]):
                publish_tables(db, publication, hidden)
    record = record.without(names)
    store(spool, record)
    if outdated:
        spool.append(truncates(outdated, settings.database))
    with row_segments(place, dict.fromkeys(tables)) as segments:
        for segment in segments:
            spool.append_file(segment)
    fault_point("database.read_again")
    record = record.completed(names, places)
    store(spool, record)
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
