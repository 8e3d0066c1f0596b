"""The releases of a lake: listed, compared, created from what waits, held and returned to. No table is moved."""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.lakes.release_tables import releases_of, require_files, require_releases
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.errors import UsageError
from sqlmesh_like.releases.release import Release, Releases, TableDifference, created_now, differences


def create_release(loaded: Loaded) -> Release:
    """Make what the last runs left whole the current release, tested or not. Raises UsageError where nothing waits."""
    require_releases(loaded)

    def add_release(releases: Releases) -> Releases:
        if releases.candidate is None:
            hint = "`sml run` or `sml build` prepares one; where it cannot, it says why"
            raise UsageError("there is nothing that is not released", hint=hint)
        return releases.with_release(releases.candidate.tables, "release create", created_now())

    after = releases_of(loaded).change(add_release)
    assert after.newest is not None
    return after.newest


def list_releases(loaded: Loaded) -> Releases:
    """Return the releases of the lake. Raises UsageError where the project makes none."""
    require_releases(loaded)
    return releases_of(loaded).read()


def show_release(loaded: Loaded, number: str | None) -> Release:
    """Return a release, by default the current one. Raises UsageError where there is none."""
    releases = list_releases(loaded)
    if number is not None:
        return releases.find(number)
    if releases.newest is None:
        raise UsageError("there is no release yet", hint="`sml build` makes the first one")
    return releases.newest


def compare_releases(loaded: Loaded, old: str, new: str) -> tuple[TableDifference, ...]:
    """Return the tables that two releases name differently. Raises UsageError for an unknown one."""
    releases = list_releases(loaded)
    return differences(releases.find(old).tables, releases.find(new).tables)


def hold_release(loaded: Loaded, number: str, *, is_held: bool) -> Release:
    """Keep the files of a release, or let go of it. Raises UsageError where files are gone already.

    Raises RetryableError where history is being removed.
    """
    with require_files(loaded, list_releases(loaded).find(number) if is_held else None):
        held = releases_of(loaded).change(lambda all: all.with_hold(all.find(number).id, is_held=is_held))
    return held.find(number)


def return_to_release(loaded: Loaded, number: str) -> Release:
    """Let readers see an earlier release; no table is moved, and the next release replaces it. Raises as above."""
    with require_files(loaded, list_releases(loaded).find(number)):
        after = releases_of(loaded).change(lambda all: replace(all, current=all.find(number).id))
    return after.find(number)
