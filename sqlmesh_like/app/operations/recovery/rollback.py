"""Rollback of a table to one of its commits. Owns the downstream effects, which are reported beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlmesh_like.app.lakes.lake import HudiLake, built_table, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.spark_session import session_for
from sqlmesh_like.app.lakes.table_locks import upkeep_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_discovered_tables
from sqlmesh_like.cdc.sources.query_log import PartitionOffsets
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.tables.replay_check import batches_to_replay
from sqlmesh_like.errors import IngestError, NodeError
from sqlmesh_like.hudi.recovery.undo import instants_after, require_undoable, undo
from sqlmesh_like.hudi.time_travel import frontier_at
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId, is_store, is_tried_store
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.project.nodes import Source, SourceTable

Effect = Literal["full refresh", "goes on", "follows"]


@dataclass(frozen=True)
class Rollback:
    """A rollback of a table (`place`) from commit `start` to commit `end`, and its effects.

    `undone`: commits that are removed, newest first; `interrupted`: services, such as `restore 2024…`, that did not
    complete and are removed. `effects`: on the models downstream, by unique id. `replayed`: number of batches that the
    next ingestion reads again, for a table of a source.
    """

    place: TablePlace
    start: str
    end: str
    undone: tuple[str, ...]
    interrupted: tuple[str, ...]
    effects: Mapping[str, Effect]
    replayed: int | None = None
    is_snapshot: bool = False
    is_published: bool = False


def plan_rollback(loaded: Loaded, name: str, when: str) -> Rollback:
    """Return what rolling a table back to a commit or a time (see `sml history`) would do; changes nothing.

    Raises ProjectError for an unknown table, UsageError for an invalid time, NodeError where it is not possible.
    """
    loaded = with_discovered_tables(loaded)
    lake = open_lake(loaded)
    place, state = built_table(lake, name)
    require_ours(loaded, place)
    if is_store(place.uri) and (loaded.target.store.single_writer or not is_tried_store(place.uri)):
        hint = "Hudi's own procedures can: create_savepoint, then rollback_to_savepoint"
        raise NodeError(f"{place.table} is on a store that is not S3 or HDFS, or has no conditional writes", hint=hint)
    timeline = Timeline(place.uri)
    end = frontier_at(timeline, when)
    require_undoable(timeline, end)
    assert state.frontier is not None
    instants = instants_after(timeline, end)
    undone = tuple(instant.requested for instant in instants if not instant.is_service)
    interrupted = tuple(f"{instant.action} {instant.requested}" for instant in instants if instant.is_service)
    source = source_of(loaded, place)
    published = (model.unique_id for model in loaded.rendered.models if model.config.publish)
    return Rollback(
        place, state.frontier, end, undone, interrupted, _effects(lake, place, undone),
        replayed_batches(loaded, *source, end) if source and undone else None,
        place.unique_id.kind == "snapshot", NodeId.parse(place.unique_id) in set(published),
    )  # fmt: skip


def roll_back(loaded: Loaded, name: str, when: str) -> Rollback:
    """Roll a table back as `plan_rollback` describes. Raises RetryableError where another process is writing."""
    lake = open_lake(with_discovered_tables(loaded))
    with lake_lock(loaded, "rollback", upkeep_locks(lake, [lake.catalog.find(name)])):
        rollback = plan_rollback(loaded, name, when)
        undo(Timeline(rollback.place.uri), rollback.end)
    return rollback


def require_ours(loaded: Loaded, place: TablePlace) -> None:
    """Raises NodeError for a table that others write."""
    if place.unique_id.kind == "source" and place.unique_id not in loaded.project.ingested:
        raise NodeError(f"{place.table} is written by others", hint="bring it back with the tool that writes it")


def source_of(loaded: Loaded, place: TablePlace) -> tuple[Source, SourceTable] | None:
    """Return the source that fills a table, None for a table that is built."""
    for source in loaded.project.sources:
        for table in source.tables:
            if table.unique_id == place.unique_id:
                return source, table
    return None


def _effects(lake: HudiLake, place: TablePlace, undone: tuple[str, ...]) -> Mapping[str, Effect]:
    """Return the effect on each model downstream of the table, sorted by unique id."""
    graph, result = lake.loaded.graph, dict[str, Effect]()
    for unique_id in graph.descendants(place.unique_id):
        if unique_id not in lake.catalog.places:
            continue
        record = lake.catalog.state(unique_id).record
        read = record.frontier.get(place.unique_id) if record else None
        if read is None:
            result[unique_id] = "follows"
        else:
            result[unique_id] = "full refresh" if read.split("_")[0] in undone else "goes on"
    return dict(sorted(result.items()))


def replayed_batches(loaded: Loaded, source: Source, table: SourceTable, end: str | None) -> int:
    """Return how many batches the next ingestion reads again. Raises NodeError where the source lacks them."""
    try:
        return batches_to_replay(
            SourcePaths(loaded.target, source), table, end, lambda partitions: _earliest(loaded, source, partitions)
        )
    except IngestError as error:
        hint = "what is taken off could not be ingested again; nothing was changed"
        raise NodeError(f"{table.table}: {error.message}", hint=hint, location=table.declared_at) from error


def _earliest(loaded: Loaded, source: Source, partitions: list[tuple[str, int]]) -> PartitionOffsets:
    from sqlmesh_like.cdc.sources.kafka_log import KafkaLog
    from sqlmesh_like.cdc.stream.source_log import event_log_of  # needs Spark, which files do not

    log = event_log_of(loaded.project, loaded.target, source)
    assert isinstance(log, KafkaLog)
    with session_for(loaded, [source]) as session:
        return log.earliest(session(), partitions)
