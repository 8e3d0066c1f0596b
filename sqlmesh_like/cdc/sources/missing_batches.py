"""The part of a source's log that is missing in a table that went back to an older state. Owns that none is left out.

A table's newest commit names its batch: all that the query has read since is to be ingested again, in order. Ingesting
more than is missing changes nothing, since each key ends with its last event; leaving out an event would lose it, so an
error is raised where it is not known what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from sqlmesh_like.cdc.sources.batch_marker import MARKER_KEY, BatchMarker
from sqlmesh_like.cdc.sources.offset_range import Offsets, files_of
from sqlmesh_like.cdc.sources.query_log import ListedFile, PartitionOffsets, QueryLog
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline

AGAIN = "/again-"
"""Between a query's id and what marks its batches as read once more: a commit of the first time is another one."""
_OTHER_QUERY = "it was written before the source was last read from another start, and what it read since is not known"


@dataclass(frozen=True)
class TablePosition:
    """How far a table has ingested its source's log. `query` None: not at all.

    `last`: the last file of its newest batch; `ends`: for each partition, the highest end offset in any commit.
    """

    query: str | None = None
    batch: int = -1
    last: str = ""
    ends: PartitionOffsets | None = None


def table_position(timeline: Timeline) -> TablePosition:
    """Read a table's position from its commits. Raises UnreadableTableError."""
    result, ends = TablePosition(), dict[tuple[str, int], int]()
    for commit in timeline.newest_first():
        text = commit.extra.get(STATE_PREFIX + MARKER_KEY)
        if text is None:
            continue
        marker = json.loads(text)
        offsets = marker.get("offsets") or {}
        query, _, is_again = str(marker["query"]).partition(AGAIN)
        if "digest" in offsets:
            return TablePosition(query, int(marker.get("batch", -1)), str(offsets["last"]))
        for topic, partitions in offsets.items():
            for partition, (_, end) in partitions.items():
                key = (str(topic), int(partition))
                ends[key] = max(ends.get(key, 0), int(end))
        if result.query is None:
            result = TablePosition(query, int(marker.get("batch", -1)), ends=ends)
            if is_again:
                # Earlier commits may have later ends: they lack what is read again.
                break
    return result


def missing_files_of_log(
    log: QueryLog, position: TablePosition, spelling: Callable[[str], str], *, is_partial: bool = False
) -> tuple[BatchMarker, ...]:
    """The batches of files that a table lacks, oldest first. `spelling` turns a listed URI into the log's path of it.

    Raises IngestError where a file is gone (`is_partial`: then it is left out), or where it is not known what is
    missing.
    """
    last_batch = max(log.log_ids)
    listed = [file for file in log.files if file.log_id <= log.log_ids[last_batch]]
    low = _low_id(log, position, listed)
    missing = [file for file in listed if file.log_id > low]
    gone = [file.uri for file in missing if not folder(unquote(file.uri)).exists()]
    if gone and is_partial:
        missing = [file for file in missing if file.uri not in gone]
    elif gone:
        raise IngestError(f"it lacks the events of {_count(missing)}, of which {len(gone)} are gone, e.g. {gone[0]}")
    by_id: dict[int, list[tuple[int, str]]] = {}
    for file in missing:
        by_id.setdefault(file.log_id, []).append((file.modified, spelling(file.uri)))
    numbers = {log_id: batch for batch, log_id in log.log_ids.items()}
    batch, marks = position.batch if position.query == log.query else -1, []
    for log_id, entries in sorted(by_id.items()):
        # A batch whose end is no longer known gets the number of the one before: at worst, it is ingested once more.
        batch = numbers.get(log_id, batch)
        marks.append(BatchMarker(log.query, batch, files_of(entries)))
    return tuple(marks)


def _low_id(log: QueryLog, position: TablePosition, listed: list[ListedFile]) -> int:
    if position.query is None:
        return -1
    if position.query == log.query:
        # A listing's id is never lower than its batch's number.
        return log.log_ids.get(position.batch, position.batch)
    if all(_plain(file.uri) != _plain(position.last) for file in listed):
        raise IngestError(_OTHER_QUERY)
    return -1


def _plain(uri: str) -> str:
    """
    >>> _plain("file:///landing/a%20b"), _plain("file:/landing/a%20b")
    ('/landing/a b', '/landing/a b')
    """
    text = unquote(uri)
    return "/" + text.removeprefix("file:").lstrip("/") if text.startswith("file:") else text


def _count(files: list[ListedFile]) -> str:
    return f"{len(files)} file{'s' * (len(files) != 1)}"


def missing_offsets(
    log: QueryLog,
    position: TablePosition,
    earliest: Callable[[list[tuple[str, int]]], PartitionOffsets],
    *,
    is_partial: bool = False,
) -> tuple[BatchMarker, ...]:
    """The batches of records that a table lacks, oldest first. `earliest` gives the first offsets brokers still have.

    Raises IngestError where records are gone (`is_partial`: then they are left out), or where it is not known what is
    missing.
    """
    ends = log.offsets
    last = _ends_after(ends, max(ends))
    start = {partition: _first_offset(log, position, partition) for partition in last}
    lacking = sorted(partition for partition, end in last.items() if end > start[partition])
    there = earliest(lacking) if lacking else {}
    for topic, partition in lacking:
        first, kept = start[topic, partition], there.get((topic, partition))
        if is_partial:
            start[topic, partition] = last[topic, partition] if kept is None else max(first, kept)
        elif kept is None or kept > first:
            end = last[topic, partition]
            stop = end if kept is None else min(kept, end)
            raise IngestError(f"it lacks offsets {first} to {stop - 1} of {topic}/{partition}, which are gone")
    marks = []
    for batch in sorted(ends):
        if position.query == log.query and batch <= position.batch:
            continue
        ranges = tuple(
            (topic, partition, start[topic, partition], end)
            for (topic, partition), end in sorted(ends[batch].items())
            if (topic, partition) in start and end > start[topic, partition]
        )
        if ranges:
            marks.append(BatchMarker(log.query, batch, Offsets(ranges)))
            start |= {(topic, partition): end for topic, partition, _, end in ranges}
    return tuple(marks)


def _ends_after(ends: Mapping[int, PartitionOffsets], last: int) -> dict[tuple[str, int], int]:
    """The offset after the last record read of each partition, also of one that later batches no longer list."""
    return {partition: end for batch in sorted(ends) if batch <= last for partition, end in ends[batch].items()}


def _first_offset(log: QueryLog, position: TablePosition, partition: tuple[str, int]) -> int:
    begun: Mapping[tuple[str, int], int] = log.first_offsets
    known = (position.ends or {}).get(partition)
    if position.query == log.query and position.batch in log.offsets:
        return _ends_after(log.offsets, position.batch).get(partition, begun.get(partition, 0))
    if position.query not in (None, log.query) and begun.get(partition, 0) > (known or 0):
        raise IngestError(_OTHER_QUERY)
    return begun.get(partition, 0) if known is None else known
