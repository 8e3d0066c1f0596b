"""A lake as a release shows it. Owns which release a reader gets."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlmesh_like.app.lakes.environment_lake import find_environment, in_environment
from sqlmesh_like.app.lakes.lake import HudiLake, open_lake
from sqlmesh_like.app.lakes.release_tables import at_release, releases_of, require_releases
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import SelectionError, UsageError
from sqlmesh_like.names import NodeId
from sqlmesh_like.releases.released_history import LATEST


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
    releases = releases_of(loaded).read()
    release = releases.newest if at is None else releases.find(at)
    if release is None:
        hint = f"`sml build` makes the first one; --at {LATEST} reads each table's newest commit"
        raise UsageError("there is no release yet", hint=hint)
    return at_release(lake, release)
