"""The release of an environment's tables once they are production's. Owns when there is one."""

from __future__ import annotations

from collections.abc import Mapping

from sqlmesh_like.app.lakes.lake_tables import LakeTables
from sqlmesh_like.app.lakes.release_tables import releases_of
from sqlmesh_like.app.operations.releases.release_edit import ReleaseEdit
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.errors import SmlError, UsageError
from sqlmesh_like.hudi.history import table_state
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.releases.release import Releases
from sqlmesh_like.releases.wholeness import NotWholeError, TablesOfRun

_COMMAND = "promote"


def require_tested(lake: LakeTables, environment: Environment, states: Mapping[str, TableState]) -> None:
    """Raises UsageError where the project releases tested tables, and data tests of these have not passed.

    `states`: the environment's tables, as they are. Where commits do not belong together, promotion goes on without a
    release: readers see the one before.
    """
    if lake.loaded.project.release != "tested":
        return
    releases = releases_of(lake.loaded).read()
    edit = _edit(lake, environment, states, releases)
    try:
        edit(releases)
    except NotWholeError:
        return
    if edit.reason:
        message = edit.reason.partition("\n")[0]
        raise UsageError(message, hint=f"`sml build -e {environment.name}` runs them")


def release_promoted(lake: LakeTables, environment: Environment, promoted: Mapping[str, Timeline]) -> int | None:
    """Release what was promoted, as the project's `release` says; return its number, None where none was made.

    `promoted`: production's tables, by unique id, as promotion has left them.
    """
    loaded = lake.loaded
    if loaded.project.release is None:
        return None
    notify = loaded.reporter.notify
    try:
        file = releases_of(loaded)
        states = {unique_id: table_state(timeline) for unique_id, timeline in promoted.items()}
        edit = _edit(lake, environment, states, file.read())
        after = file.change(edit)
    except SmlError as error:
        notify(f"warning: no release was made: {error}", "warn")
        return None
    if not edit.is_made and after.candidate is not None:
        notify("what was promoted is released by `sml release create`")
    return after.current if edit.is_made else None


def _edit(
    lake: LakeTables, environment: Environment, states: Mapping[str, TableState], releases: Releases
) -> ReleaseEdit:
    current = releases.newest.tables if releases.newest is not None else {}
    commits = {name: entry.commit for name, entry in current.items()}
    commits |= {name: state.frontier or "" for name, state in states.items()}
    passed = frozenset(
        test
        for test, read in environment.passed.items()
        if all(commits.get(name, commit) == commit for name, commit in read.items())
    )
    run = TablesOfRun(states, {}, frozenset(states))
    mode = lake.loaded.project.release
    return ReleaseEdit(lake, _COMMAND, mode, run, passed)
