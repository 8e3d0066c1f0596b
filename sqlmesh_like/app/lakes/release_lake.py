"""A lake as a release shows it. Owns which release a reader gets, and which tables belong to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlmesh_like.app.lakes.environment_lake import find_environment, in_environment
from sqlmesh_like.app.lakes.lake import HudiLake, clock, open_lake, require_lake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lock_registry import Locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import SelectionError, UsageError
from sqlmesh_like.names import NodeId
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.releases.release import Release
from sqlmesh_like.releases.release_file import ReleaseFile, release_file
from sqlmesh_like.releases.released_history import LATEST, ReleasedHistory

_LOCK = "~releases"


def release_locks(loaded: Loaded) -> Locks:
    """Return the lock of removing history: while a release is being held, or returned to, nothing is removed."""
    return {_LOCK: "read"} if loaded.project.release is not None else {}


def require_releases(loaded: Loaded) -> None:
    """Raises UsageError where the project makes no releases, or its target has no lake."""
    if loaded.project.release is None:
        hint = "the setting `release: always`, `tested` or `manual` of the project turns them on"
        raise UsageError("the project makes no releases", hint=hint)
    require_lake(loaded)


def releases_of(loaded: Loaded) -> ReleaseFile:
    """Return the object that names the releases of the project's tables."""
    return release_file(loaded.target, loaded.project.name)


def reading_lake(loaded: Loaded, at: str | None = None) -> HudiLake:
    """Return the lake for reading; `at`: a release or `latest-commit`, by default the current release.

    Of a call in an environment: with the environment's tables. Raises UsageError where the release or the environment
    is unknown, where there is no release yet, or where `at` is given and releases are off.
    """
    name = loaded.invocation.environment
    if name is None:
        return production_lake(loaded, at)
    return in_environment(production_lake(loaded, at), find_environment(loaded, name))


def newest_lake(loaded: Loaded, selected: Collection[str] = ()) -> HudiLake:
    """Return the lake at its newest commits; of a call in an environment, as runs there see it."""
    return open_lake(loaded, selected) if loaded.invocation.environment is None else reading_lake(loaded)


def environment_tables(loaded: Loaded, selected: Iterable[NodeId]) -> list[NodeId]:
    """Return those of the selected nodes that the environment of the call has; all of them where it is in none.

    Raises UsageError where there is no such environment, SelectionError where it has none of them.
    """
    name = loaded.invocation.environment
    if name is None:
        return list(selected)
    tables, wanted = find_environment(loaded, name).tables, list(selected)
    own = [unique_id for unique_id in wanted if unique_id in tables]
    if wanted and not own:
        hint = f"it has {', '.join(sorted(tables)) or 'no tables'}; leave -e out for production's"
        raise SelectionError(f"the environment {name!r} has no table of the selected models", hint=hint)
    return own


def production_lake(loaded: Loaded, at: str | None = None) -> HudiLake:
    """Return the same whatever environment the call is in."""
    if at is not None:
        require_releases(loaded)
    lake = open_lake(loaded)
    if loaded.project.release is None or at == LATEST:
        return lake
    if loaded.invocation.defer:
        hint = f"add --at {LATEST}, or leave --defer out"
        raise UsageError("--defer reads tables of another warehouse, which no release names", hint=hint)
    return at_release(lake, _chosen(loaded, at))


def at_release(lake: HudiLake, release: Release) -> HudiLake:
    """Return a lake at a release; what it does not name and no model reads stays at its newest commit."""
    history = ReleasedHistory(release, released_places(lake, release))
    return replace(lake, catalog=replace(lake.catalog, history=history))


def released_places(lake: HudiLake, release: Release) -> list[TablePlace]:
    """Return the tables that a release names, or would have to: models, and what models read."""
    planner = lake.planner(clock(None))
    models = [model for model in lake.loaded.rendered.models if model.config.materialized != "ephemeral"]
    expected = {unique_id for model in models for unique_id in (model.unique_id, *planner.inputs(model))}
    return [each for name, each in lake.catalog.places.items() if name in expected or name in release.tables]


def released_frontiers(loaded: Loaded) -> dict[str, list[str]]:
    """Return the commits, by table, that the current release, held ones and the candidate name."""
    frontiers: dict[str, list[str]] = {}
    if loaded.project.release is not None:
        for release in releases_of(loaded).read().protected:
            for unique_id, entry in release.tables.items():
                frontiers.setdefault(unique_id, []).append(entry.commit)
    return frontiers


@contextmanager
def require_files(loaded: Loaded, release: Release | None) -> Iterator[None]:
    """While nothing removes history: the files of a release are there. Raises GoneError where some are not.

    Tables that the project no longer has do not count. Raises RetryableError where history is being removed.
    """
    with lake_lock(loaded, "release", {_LOCK: "replace"}):
        if release is not None:
            lake = at_release(open_lake(loaded), release)
            named = [place for place in released_places(lake, release) if place.unique_id in release.tables]
            lake.catalog.states(place.unique_id for place in named)
        yield


def _chosen(loaded: Loaded, at: str | None) -> Release:
    releases = releases_of(loaded).read()
    if at is not None:
        return releases.find(at)
    if releases.newest is None:
        hint = f"`sml build` makes the first one; --at {LATEST} reads each table's newest commit"
        raise UsageError("there is no release yet", hint=hint)
    return releases.newest
