"""Tables that went back to an older state: the batches that they lack are queued, to be read from the source's log.

Owns the repair of a table that `last_commits` reports; `missing_batches` determines the batches, and `ingest_run`
ingests them like those of a table that failed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.catch_up_queue import note, tables_behind
from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
from sqlmesh_like.cdc.sources.missing_batches import (
    TablePosition,
    missing_files_of_log,
    missing_offsets,
    table_position,
)
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.query_log import QueryLog, read_query_log
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
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
    place, log = context.place, context.log
    position = table_position(Timeline(place.table_uri(lost.table)))
    try:
        if lost.lacks_dead_letters or position.query is None:
            position = _beginning(place, query, position)
        if isinstance(log, KafkaLog):
            return missing_offsets(query, position, lambda partitions: log.earliest(context.spark, partitions))
        return missing_files_of_log(query, position, _spelt if isinstance(log, ParquetLog) else str)
    except IngestError as error:
        raise lost.error(error.message) from error


def _beginning(place: SourcePaths, query: QueryLog, position: TablePosition) -> TablePosition:
    """The position before all that the query has read. Raises IngestError where the table had other events as well."""
    if was_restarted(place) or position.query not in (None, query.query):
        raise IngestError("it lacks events from before the source was last read from another start")
    return TablePosition()


def _spelt(uri: str) -> str:
    """The path of a listed file as `ParquetLog` spells it.

    >>> _spelt("file:///landing/a.parquet")
    'file:/landing/a.parquet'
    """
    return "file:/" + uri.removeprefix("file:///") if uri.startswith("file:///") else uri
