"""Whether a source could refill a table that goes back to an earlier commit. Needs no JVM for files."""

from __future__ import annotations

from collections.abc import Callable

from sqlmesh_like.cdc.sources.missing_batches import (
    TablePosition,
    missing_files_of_log,
    missing_offsets,
    table_position,
)
from sqlmesh_like.cdc.sources.query_log import PartitionOffsets, read_query_log
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.last_commits import dead_letters_after, was_restarted
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import SourceTable

Earliest = Callable[[list[tuple[str, int]]], PartitionOffsets]
"""Returns the first offset that the brokers still have, by partition."""


def batches_to_replay(place: SourcePaths, table: SourceTable, frontier: str | None, earliest: Earliest) -> int:
    """How many batches would be ingested again if a table went back to `frontier` (None: to no rows).

    Raises IngestError where the source no longer has all of them, or where that is not known.
    """
    query = read_query_log(place.checkpoint)
    if query is None:
        raise IngestError("what its source has read is not known: it has no checkpoint")
    position = TablePosition()
    if frontier is not None:
        position = table_position(Timeline(place.table_uri(table), until=frontier.split("_")[0]))
    if position.query is None or frontier is None or dead_letters_after(place, table, frontier):
        if was_restarted(place) or position.query not in (None, query.query):
            raise IngestError("it would lack events from before the source was last read from another start")
        position = TablePosition()
    ingest = place.source.ingest
    if ingest is not None and ingest.kafka is not None:
        return len(missing_offsets(query, position, earliest))
    return len(missing_files_of_log(query, position, str))
