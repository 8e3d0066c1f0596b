"""The environments of a project: listed, and dropped. Needs no JVM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sqlmesh_like.app.lakes.environment_lake import (
    find_environment,
    find_folder,
    require_environments,
)
from sqlmesh_like.app.lakes.lake import HudiLake, open_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.table_locks import environment_lock
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.environment_run import require_settled
from sqlmesh_like.app.operations.environments.members import newest_commit
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.environments.environment_file import environment_folders
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.side_by_side import side_by_side


@dataclass(frozen=True)
class MovedTable:
    """A table of production that has other commits than when it was cloned; None: it was not, or is no longer, there.

    `cloned` and `now` are commits, services included; of a table that was ahead of its release: the release's.
    """

    unique_id: str
    table: str
    cloned: str | None
    now: str | None


@dataclass(frozen=True)
class ListedEnvironment:
    """An environment, and those of its tables that production has changed since."""

    environment: Environment
    moved: tuple[MovedTable, ...]


def list_environments(loaded: Loaded) -> tuple[ListedEnvironment, ...]:
    """Return the environments of the project under its target, by name. Raises UsageError where there can be none."""
    require_environments(loaded)
    lake = open_lake(loaded)
    ours = (loaded.project.name, loaded.target.schema)
    known = [each.read() for each in environment_folders(loaded.target.warehouse)]
    return tuple(
        ListedEnvironment(each, moved_tables(lake, each))
        for each in known
        if each is not None and (each.project, each.schema) == ours
    )


def moved_tables(lake: HudiLake, environment: Environment) -> tuple[MovedTable, ...]:
    """Return the environment's tables that production has changed since they were cloned."""
    moved = side_by_side(partial(_moved_table, lake, environment), sorted(environment.tables))
    return tuple(table for table in moved if table is not None)


def _moved_table(lake: HudiLake, environment: Environment, unique_id: str) -> MovedTable | None:
    entry, place = environment.tables[unique_id], lake.catalog.places.get(unique_id)
    timeline = None if place is None else Timeline(place.uri)
    now = None if timeline is None else newest_commit(timeline)
    if now != entry.newest:
        return MovedTable(unique_id, entry.table, entry.newest, now)
    if timeline is not None and entry.base != timeline.frontier:
        return MovedTable(unique_id, entry.table, entry.base, timeline.frontier)
    return None


def drop_environment(loaded: Loaded, name: str) -> Environment:
    """Remove an environment with its tables. Raises UsageError where there is none, or it is another project's.

    Raises RetryableError where another call uses it.
    """
    find_environment(loaded, name)
    with lake_lock(loaded, "env drop", environment_lock(name)):
        place, dropped = find_folder(loaded, name)
        require_settled(dropped)
        place.remove()
    return dropped
