"""Repair of a broken table. Owns the method: a model is rebuilt, a source's table is ingested again.

A model's rows depend only on its inputs, whatever happened to its own history: it is built in another folder and
swapped. A source's table goes back to its last complete commit; the next ingestion detects that and reads the rest
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import upkeep_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_discovered_tables
from sqlmesh_like.app.operations.recovery.rollback import replayed_batches, require_ours, source_of
from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.last_good_commit import TableHealth, table_health
from sqlmesh_like.hudi.recovery.table_removal import set_aside
from sqlmesh_like.hudi.recovery.undo import undo
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.catalog import TablePlace


@dataclass(frozen=True)
class Damage:
    """The health of a table, and what fills it: its node and, for an ingested table, the name of the source."""

    place: TablePlace
    health: TableHealth
    source: str | None = None


def find_damage(loaded: Loaded, name: str) -> Damage:
    """Examine a table. Raises ProjectError for an unknown name, NodeError for a table that others write.

    Raises NodeError for a damaged snapshot or table with frozen partitions too: their rows are stored nowhere else.
    """
    loaded = with_discovered_tables(loaded)
    place = open_lake(loaded).catalog.find(name)
    require_ours(loaded, place)
    if not folder(place.uri).exists():
        raise NodeError(f"the table {place.table} does not exist yet", hint="run `sml ingest` or `sml run` first")
    health = table_health(place.uri)
    if place.unique_id.kind == "snapshot" and not health.is_whole:
        hint = "restore it from a backup: no query gives a snapshot's old versions again"
        raise NodeError(f"{place.table}: {health.problem}", hint=hint)
    model = next((each for each in loaded.rendered.models if each.unique_id == place.unique_id), None)
    if model is not None and model.config.frozen_before is not None and not health.is_whole:
        hint = "restore it from a backup: rows of frozen partitions are stored nowhere else"
        raise NodeError(f"{place.table}: {health.problem}", hint=hint)
    source = source_of(loaded, place)
    return Damage(place, health, source[0].name if source else None)


def restore_ingested_table(loaded: Loaded, damage: Damage, notify: Callable[[str], None]) -> None:
    """Roll a source's table back to its last complete commit; where there is none, move its folder away.

    Raises NodeError, having changed nothing, where the source no longer has the events that would be missing.
    """
    loaded = with_discovered_tables(loaded)
    source = source_of(loaded, damage.place)
    assert source is not None
    with lake_lock(loaded, "repair", upkeep_locks(open_lake(loaded), [damage.place])):
        replayed_batches(loaded, *source, damage.health.good)
        timeline = Timeline(damage.place.uri)
        if damage.health.good is None:
            aside = set_aside(damage.place.uri)
            notify(f"{damage.place.table} has no commit that is whole: its folder is now {aside}")
            return
        undone = undo(timeline, damage.health.good)
        notify(f"{damage.place.table} went back to {damage.health.good}: taken off are {', '.join(undone)}")


def command_for(unique_id: NodeId) -> str:
    """Return the command that builds a node's table."""
    return "seed" if unique_id.kind == "seed" else "run"
