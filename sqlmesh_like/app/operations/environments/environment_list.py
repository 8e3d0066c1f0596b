"""The environments of a project: listed, and dropped. Needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlmesh_like.app.lakes.environment_lake import (
    find_environment,
    find_folder,
    require_environments,
    require_settled,
)
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import LakeTables, open_tables
from sqlmesh_like.app.lakes.table_locks import environment_lock
from sqlmesh_like.app.loading.loaded import Loaded
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
    lake = open_tables(loaded)
    ours = (loaded.project.name, loaded.target.schema)
    known = [each.read() for each in environment_folders(loaded.target.warehouse)]
    return tuple(
        ListedEnvironment(each, moved_tables(each, _timelines(lake, each)))
        for each in known
        if each is not None and (each.project, each.schema) == ours
    )


def moved_tables(environment: Environment, production: Mapping[str, Timeline]) -> tuple[MovedTable, ...]:
    """Return the tables that production, whose timelines are given, has changed since they were cloned."""
    moved: list[MovedTable] = []
    for unique_id, entry in environment.tables.items():
        timeline = production.get(unique_id)
        now = None if timeline is None else timeline.newest_commit
        if now != entry.newest:
            moved.append(MovedTable(unique_id, entry.table, entry.newest, now))
        elif timeline is not None and entry.base != timeline.frontier:
            moved.append(MovedTable(unique_id, entry.table, entry.base, timeline.frontier))
    return tuple(moved)


def _timelines(lake: LakeTables, environment: Environment) -> Mapping[str, Timeline]:
    """Production's timelines of the tables that an environment has, and that the project still has."""
    names = [name for name in environment.tables if name in lake.catalog.places]
    timelines = side_by_side(lambda name: Timeline(lake.catalog.places[name].uri), names)
    return dict(zip(names, timelines, strict=True))


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
