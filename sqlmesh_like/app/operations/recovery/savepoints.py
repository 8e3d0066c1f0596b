"""Savepoints of the project's tables. Owns whose tables they may be; `hudi.recovery.savepoints` writes them."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager

from sqlmesh_like.app.lakes.lake import built_table, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import upkeep_locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.source_discovery import with_dead_letters, with_discovered_tables
from sqlmesh_like.app.operations.recovery.rollback import require_ours
from sqlmesh_like.hudi.recovery import savepoints
from sqlmesh_like.hudi.recovery.savepoints import Savepoint
from sqlmesh_like.hudi.time_travel import frontier_at
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from sqlmesh_like.plan.catalog import TablePlace


def create_savepoint(loaded: Loaded, name: str, when: str | None, comment: str) -> tuple[TableName, Savepoint]:
    """Create a savepoint of a table's commit at a time (None: of its newest), and return it with the table's name.

    Raises ProjectError for an unknown table, UsageError for an invalid time, NodeError where it is not possible, and
    RetryableError where another process is writing.
    """
    with _written_table(loaded, name) as place:
        timeline = Timeline(place.uri)
        frontier = frontier_at(timeline, when) if when is not None else timeline.frontier
        assert frontier is not None, "a table that is built has a commit"
        return place.table, savepoints.create_savepoint(timeline, frontier, _user(), comment)


def delete_savepoint(loaded: Loaded, name: str, instant: str) -> TableName:
    """Delete the savepoint of a table's commit, and return the table's name. Raises as `create_savepoint` does."""
    with _written_table(loaded, name) as place:
        savepoints.delete_savepoint(Timeline(place.uri), instant.split("_")[0])
        return place.table


def list_savepoints(loaded: Loaded, name: str | None) -> tuple[tuple[TableName, Savepoint], ...]:
    """Return the savepoints of a table, or of all, by table and commit. Raises ProjectError for an unknown table."""
    catalog = open_lake(with_dead_letters(with_discovered_tables(loaded))).catalog
    places = [catalog.find(name)] if name else sorted(catalog.places.values(), key=lambda place: str(place.table))
    hudi = (place for place in places if place.format == "hudi")
    return tuple((place.table, each) for place in hudi for each in savepoints.savepoints(Timeline(place.uri)))


@contextmanager
def _written_table(loaded: Loaded, name: str) -> Iterator[TablePlace]:
    """A table that this project writes, and nobody else meanwhile."""
    loaded = with_discovered_tables(loaded)
    lake = open_lake(loaded)
    place, _ = built_table(lake, name)
    require_ours(loaded, place)
    with lake_lock(loaded, "savepoint", upkeep_locks(lake, [place], "append")):
        yield place


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""
