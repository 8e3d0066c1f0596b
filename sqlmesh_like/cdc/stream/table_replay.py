"""Tables that lack events which count as read: their batches are queued, to be read from the source's log again.

Such are tables that went back to an older state (`last_commits` reports them), and those that were declared after
events of theirs had been skipped (`skipped_tables`). `missing_batches` determines the batches, and `ingest_run` ingests
them like those of a table that failed.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.catch_up_queue import note, tables_behind
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.missing_batches import (
    AGAIN,
    TablePosition,
    missing_files_of_log,
    missing_offsets,
    table_position,
)
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.query_log import QueryLog, read_query_log
from sqlmesh_like.cdc.sources.route import route
from sqlmesh_like.cdc.sources.skipped_tables import SkippedTable, forget_skipped, skipped_tables
from sqlmesh_like.cdc.stream.ingest_context import IngestContext
from sqlmesh_like.cdc.tables.last_commits import WentBack, note_replayed, tables_that_went_back, was_restarted
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.unfinished_table import clear_without_commit, rows_without_commit

_log = logging.getLogger("sqlmesh_like.cdc")


def queue_what_is_missing(context: IngestContext) -> None:
    """Queue for each table that went back all batches that the source has read since.

    Raises IngestError where a table cannot be repaired so; then nothing is queued for any table.
    """
    place = context.place
    lost = tables_that_went_back(place)
    query = read_query_log(place.checkpoint) if lost else None
    queued = [(each, _missing(context, query, each)) for each in lost]
    for each, marks in queued:
        count = f"{len(marks)} batch{'es' * (len(marks) != 1)}"
        _log.warning("warning: %s; what it lacks is ingested again: %s", each.summary, count)
        pending = tables_behind(place).get(each.table.name, ())
        earlier = [mark for mark in pending if query is None or mark.query != query.query]
        # The queue is written first: if the process dies before the second note, both are written again.
        uri = place.table_uri(each.table)
        if rows_without_commit(uri):
            clear_without_commit(uri)  # all of its rows are ingested again
        note(place, each.table, (*earlier, *marks))
        note_replayed(place, each.table)


def _missing(context: IngestContext, query: QueryLog | None, lost: WentBack) -> Sequence[BatchMarker]:
    if not lost.is_whole:
        raise lost.error()
    if query is None:
        raise lost.error("what its source has read is not known: it has no checkpoint")
    place = context.place
    position = table_position(Timeline(place.table_uri(lost.table)))
    try:
        if lost.lacks_dead_letters or position.query is None:
            # All that the query has read, unless the table had other events as well.
            if was_restarted(place) or position.query not in (None, query.query):
                raise IngestError("it lacks events from before the source was last read from another start")
            position = TablePosition()
        return _batches_after(context, query, position)
    except IngestError as error:
        raise lost.error(error.message) from error


def _batches_after(
    context: IngestContext, query: QueryLog, position: TablePosition, *, is_partial: bool = False
) -> Sequence[BatchMarker]:
    log = context.log
    if isinstance(log, KafkaLog):
        earliest = partial(log.earliest, context.spark)
        return missing_offsets(query, position, earliest, is_partial=is_partial)
    spelling = _log_path if isinstance(log, ParquetLog) else str
    return missing_files_of_log(query, position, spelling, is_partial=is_partial)


def queue_what_was_skipped(context: IngestContext) -> None:
    """Queue for each table that takes events which were skipped until now all batches since the first of these.

    All, and not only the skipped events, because the order among them and those of other shards matters. What the log
    no longer has is left out, with a warning.
    """
    place, by_table = context.place, dict[str, list[SkippedTable]]()
    skipped = skipped_tables(place)
    query = read_query_log(place.checkpoint) if skipped else None
    if query is None:
        return
    for each in skipped:
        table = route(place.source, *each.source) if each.query == query.query else None
        if table is not None:
            by_table.setdefault(table.name, []).append(each)
    for table in place.source.tables:
        if own := by_table.get(table.name):
            sources = [each.source for each in own]
            what = ", ".join(sorted({".".join(filter(None, source)) for source in sources}))
            marks = _batches_since(context, query, own, what)
            count = f"{len(marks)} batch{'es' * (len(marks) != 1)}"
            _log.warning("events of %s belong to %s now: %s with such are read again", what, table.table, count)
            # The queue is written first: if the process dies before the record is, it is only written twice.
            note(place, table, (*tables_behind(place).get(table.name, ()), *marks))
            forget_skipped(place, sources)


def _batches_since(
    context: IngestContext, query: QueryLog, skipped: Sequence[SkippedTable], what: str
) -> Sequence[BatchMarker]:
    ends = dict[tuple[str, int], int]()
    for each in skipped:
        ends |= {key: min(offset, ends.get(key, offset)) for key, offset in each.starts.items()}
    position = TablePosition(query.query, min(each.batch for each in skipped) - 1, ends=ends)
    try:
        marks = _batches_after(context, query, position)
    except IngestError as error:
        marks = _batches_after(context, query, position, is_partial=True)
        _log.warning("warning: not all skipped events of %s are still there: %s", what, error.message)
    # A table that had other events of these batches must not take them for those that it has.
    digest = hashlib.sha256(what.encode()).hexdigest()[:8]
    return [replace(mark, query=f"{mark.query}{AGAIN}{digest}") for mark in marks]


def _log_path(uri: str) -> str:
    """The path of a listed file as `ParquetLog` spells it.

    >>> _log_path("file:///landing/a%20b.parquet"), _log_path("s3a://bucket/a.parquet")
    ('file:/landing/a b.parquet', 's3a://bucket/a.parquet')
    """
    path = unquote(uri)
    return "file:/" + path.removeprefix("file:///") if path.startswith("file:///") else path
