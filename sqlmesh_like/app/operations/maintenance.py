"""Table services. Owns which tables they apply to; retention decides what may be removed, the engine removes it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Literal, Protocol

from sqlmesh_like.app.lakes.clean_tables import cleanings_due
from sqlmesh_like.app.lakes.lake import HudiLake, hudi_options, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.release_tables import release_locks
from sqlmesh_like.app.lakes.table_locks import upkeep_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import discovered_tables, with_discovered_tables
from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.change_log import remove_logs
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.catalog import TablePlace


@dataclass(frozen=True)
class MaintenanceResult:
    """The outcome for one table. `done`: services in words, empty where none was due; `error`: why one failed."""

    place: TablePlace
    done: tuple[str, ...]
    seconds: float
    error: str | None = None

    @property
    def status(self) -> Literal["success", "no-op", "error"]:
        if self.error is not None:
            return "error"
        return "success" if self.done else "no-op"


class MaintenanceListener(Protocol):
    """Receives each table before and after its maintenance."""

    def started(self, number: int, total: int, place: TablePlace) -> None: ...

    def ended(self, number: int, total: int, result: MaintenanceResult) -> None: ...


def maintain(loaded: Loaded, listener: MaintenanceListener, *, rebucket: bool = False) -> tuple[MaintenanceResult, ...]:
    """Compact the selected tables and remove history that nothing needs; `rebucket`: also adapt numbers of buckets.

    Raises UsageError where the target has no lake, RetryableError where another process is writing.
    """
    loaded = with_discovered_tables(loaded)
    selected = {node.unique_id for node in loaded.select_nodes("model", "seed", "source")} | discovered_tables(loaded)
    lake = open_lake(loaded)
    # Only what this project alone writes: tables of other writers have their own services.
    built = {node.unique_id for node in loaded.graph.nodes.values() if node.resource_type != "source"}
    owned = selected & (loaded.project.ingested | built)
    ours = [place for place in lake.catalog.places.values() if place.unique_id in owned]
    there = [place for place in ours if lake.catalog.state(place.unique_id).kind in ("cow", "mor")]
    results: list[MaintenanceResult] = []
    with lake_lock(loaded, "maintain", {**upkeep_locks(lake, there), **release_locks(loaded)}):
        try:
            for number, place in enumerate(there, 1):
                loaded.reporter.phase(f"maintaining {number} of {len(there)}, {place.table}")
                listener.started(number, len(there), place)
                results.append(_maintain(lake, place, rebucket))
                listener.ended(number, len(there), results[-1])
        finally:
            lake.engine.stop()
    return tuple(results)


def _maintain(lake: HudiLake, place: TablePlace, rebucket: bool) -> MaintenanceResult:
    started = perf_counter()
    try:
        done = _run_services(lake, place, rebucket)
    except NodeError as error:
        return MaintenanceResult(place, (), perf_counter() - started, str(error))
    return MaintenanceResult(place, tuple(done), perf_counter() - started)


def _run_services(lake: HudiLake, place: TablePlace, rebucket: bool) -> list[str]:
    """Run the services that are due for one table and return them in words."""
    done = []
    fault_point("maintain.begin")
    if lake.catalog.state(place.unique_id).kind == "mor" and (groups := lake.engine.compact(place.uri)):
        done.append(f"{groups} file group{'s' if groups > 1 else ''} compacted")
        fault_point("maintain.compacted")
    if rebucket and (changed := lake.engine.rebucket(place.uri, hudi_options(lake.loaded, place.unique_id))):
        done.append("{} → {} buckets, {:,} → {:,} files".format(*changed.buckets, *changed.files))
        fault_point("maintain.rebucketed")
    for cleaning in cleanings_due(lake, [place.unique_id], slack=0):
        lake.engine.clean(cleaning.uri, cleaning.retain)
        done.append(f"{cleaning.retain} commits kept")
    if removed := remove_logs(Timeline(place.uri)):
        done.append(f"{removed} change log{'s' if removed > 1 else ''} removed")
    return done
