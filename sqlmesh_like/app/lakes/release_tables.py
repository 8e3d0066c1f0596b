"""The releases of a lake, and its tables as one of them names them. Owns which tables belong to it; needs no engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.lake_tables import LakeTables, TablesT, open_tables, require_lake
from sqlmesh_like.app.lakes.lock_registry import Locks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import UsageError
from sqlmesh_like.plan.catalog import TablePlace
from sqlmesh_like.releases.release import Release
from sqlmesh_like.releases.release_file import ReleaseFile, release_file
from sqlmesh_like.releases.released_history import ReleasedHistory

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


def at_release(lake: TablesT, release: Release) -> TablesT:
    """Return a lake at a release; what it does not name and no model reads stays at its newest commit."""
    history = ReleasedHistory(release, released_places(lake, release))
    return replace(lake, catalog=replace(lake.catalog, history=history))


def released_places(lake: LakeTables, release: Release) -> list[TablePlace]:
    """Return the tables that a release names, or would have to: models, and what models read."""
    models = [model for model in lake.loaded.rendered.models if model.config.materialized != "ephemeral"]
    expected = {unique_id for model in models for unique_id in (model.unique_id, *lake.reads.of(model))}
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
            lake = at_release(open_tables(loaded), release)
            named = [place for place in released_places(lake, release) if place.unique_id in release.tables]
            lake.catalog.states(place.unique_id for place in named)
        yield
