"""Source tables whose events were skipped, because no table was declared for them. Owns the record of since when.

A later declaration must not miss these events, which count as read: `table_replay` reads them again for its table. The
record is written before a batch counts as done. It is of one query: another one reads the log from another start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.discover import SourceName
from sqlmesh_like.cdc.sources.notes import read_notes, write_notes
from sqlmesh_like.cdc.sources.offset_range import Offsets
from sqlmesh_like.cdc.sources.query_log import PartitionOffsets
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder

_FILE = "tables.json"


@dataclass(frozen=True)
class SkippedTable:
    """A source table, and the first batch of a query that had events of it. `starts`: the batch's first offsets."""

    source: SourceName
    query: str
    batch: int
    starts: PartitionOffsets


def skipped_tables(place: SourcePaths) -> list[SkippedTable]:
    """The tables that the source's query has skipped so far."""
    notes = folder(place.skipped)
    entries = read_notes(notes, _FILE) if notes.exists(_FILE) else []
    return [
        SkippedTable(
            (entry["database"], entry["schema"], entry["table"]),
            entry["query"],
            entry["batch"],
            {(topic, partition): offset for topic, partition, offset in entry["starts"]},
        )
        for entry in entries
    ]


def note_skipped(place: SourcePaths, mark: BatchMarker, sources: Iterable[SourceName]) -> None:
    """Record that a batch had events of these tables, unless an earlier batch of its query had some."""
    wanted = set(sources)
    known = [each for each in skipped_tables(place) if each.query == mark.query] if wanted else []
    fresh = sorted(wanted - {each.source for each in known}, key=repr)
    ranges = mark.extent.ranges if isinstance(mark.extent, Offsets) else ()
    starts = {(topic, partition): first for topic, partition, first, _ in ranges}
    if fresh:
        _write(place, [*known, *(SkippedTable(source, mark.query, mark.batch, starts) for source in fresh)])


def forget_skipped(place: SourcePaths, sources: Iterable[SourceName] | None = None) -> None:
    """Drop the record of these tables, or of all: their events are read again."""
    gone = None if sources is None else set(sources)
    known = skipped_tables(place)
    left = [] if gone is None else [each for each in known if each.source not in gone]
    if left != known:
        _write(place, left)


def _write(place: SourcePaths, tables: Iterable[SkippedTable]) -> None:
    entries = [
        {
            **dict(zip(("database", "schema", "table"), each.source, strict=True)),
            "query": each.query,
            "batch": each.batch,
            "starts": [[topic, partition, offset] for (topic, partition), offset in each.starts.items()],
        }
        for each in tables
    ]
    write_notes(folder(place.skipped), _FILE, entries)
