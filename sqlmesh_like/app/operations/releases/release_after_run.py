"""A release after a run. Owns when a run may make one; `releases.wholeness` says which commits belong together."""

from __future__ import annotations

from dataclasses import replace

from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.lakes.release_tables import at_release, releases_of
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.releases.release_edit import ReleaseEdit, pluralize
from sqlmesh_like.errors import SmlError, UsageError
from sqlmesh_like.plan.history import TableState
from sqlmesh_like.publish.publisher import LakePublisher, SentTables
from sqlmesh_like.releases.wholeness import TablesOfRun
from sqlmesh_like.render.rendered import RenderedTest
from sqlmesh_like.run.executor import Executor, with_publication
from sqlmesh_like.run.result import ModelResult, RunResult, TestResult

RELEASING = ("run", "build", "watch")
"""Commands at whose end a release is made."""


def release_after_run(
    lake: HudiLake,
    command: str,
    executor: Executor,
    result: RunResult,
    publisher: LakePublisher | None,
    *,
    is_forced: bool = False,
) -> RunResult:
    """Make a release of what a run leaves, as the project's `release` says, publish it, and return the run's result.

    The tables are right whatever becomes of it, so that a release that is not made is a warning, with the reason.
    `is_forced`: whatever tests say, as after an erasure. The caller holds the run's locks.
    """
    loaded = lake.loaded
    if loaded.project.release is None:
        return result
    if command in RELEASING:
        try:
            _Release(lake, command, executor, result, is_forced=is_forced).make()
        except SmlError as error:
            loaded.reporter.notify(f"warning: no release was made: {error}", "warn")
    return result if publisher is None or not result.ok else _with_publications(lake, result, publisher)


def makes_release(loaded: Loaded, command: str) -> bool:
    """Whether a release is made at the end of a command."""
    return loaded.project.release is not None and command in RELEASING


def require_readable_releases(loaded: Loaded, command: str) -> None:
    """Raises MachineError, or NewerVersionError, where a release could not be made of what a run would leave."""
    if makes_release(loaded, command):
        releases_of(loaded).read()


def publisher_of_run(lake: HudiLake, publisher: LakePublisher | None) -> LakePublisher | None:
    """Return what publishes a model right after its table: nothing where releases are published instead."""
    return publisher if lake.loaded.project.release is None else None


def _with_publications(lake: HudiLake, result: RunResult, publisher: LakePublisher) -> RunResult:
    """Publish the models of a run as the current release has them, all of a destination in one transaction."""
    release = releases_of(lake.loaded).read().newest
    if release is None:
        return result
    models = [each.model for each in result.results if isinstance(each, ModelResult)]
    chosen = [model for model in models if model.unique_id in publisher.chosen]
    released = replace(publisher, catalog=at_release(lake, release).catalog)
    outcomes = SentTables(released.publish_together(chosen))
    return RunResult(
        tuple(
            with_publication(each, outcomes)
            if isinstance(each, ModelResult) and each.node.unique_id in publisher.chosen
            else each
            for each in result.results
        )
    )


class _Release:
    """One attempt after a run."""

    def __init__(self, lake: HudiLake, command: str, executor: Executor, result: RunResult, *, is_forced: bool) -> None:
        self._mode = "always" if is_forced else lake.loaded.project.release
        self._lake, self._command, self._executor, self._result = lake, command, executor, result
        self._notify = lake.loaded.reporter.notify

    def make(self) -> None:
        if not self._result.ok:
            self._notify("no release was made: not everything succeeded")
            return
        run = tables_of_run(self._lake, self._executor, self._result, are_tested=self._mode == "tested")
        if not run.built and not run.read:
            return
        if borrowed := self._lake.catalog.borrowed:
            raise UsageError(f"{len(borrowed)} tables were read from another warehouse", hint="run without --defer")
        passed = passed_tests(self._executor, self._result)
        edit = ReleaseEdit(self._lake, self._command, self._mode, run, passed)
        after = releases_of(self._lake.loaded).change(edit)
        if edit.is_made and after.newest is not None:
            self._notify(f"release {after.current}: {pluralize(len(after.newest.tables), 'table')}")
        elif self._mode == "manual" and after.candidate is not None and self._command != "watch":
            self._notify("what this run left is released by `sml release create`")
        elif edit.reason and self._command != "watch":  # which runs no tests, round after round
            self._notify(f"warning: no release was made: {edit.reason}", "warn")


def tables_of_run(lake: HudiLake, executor: Executor, result: RunResult, *, are_tested: bool) -> TablesOfRun:
    """Return the tables that a run without a failure has brought up to date, and what these and its views read.

    `are_tested`: also what its data tests read, because they have passed for these commits only.
    """
    rendered, inputs = lake.loaded.rendered, lake.reads
    ended = [each.node.unique_id for each in result.results if not isinstance(each, TestResult)]
    names = [name for name in ended if name in lake.catalog.places]
    left = executor.left
    states = lake.catalog.states(names) if left is None else {name: left[name] for name in names}
    built = {name: state for name, state in states.items() if state.exists}
    read: dict[str, TableState] = {}
    for name in ended:
        read |= {each: executor.pinned[each] for each in inputs.of_table(name) if each in executor.pinned}
    tests = (each.node for each in result.results if are_tested and isinstance(each, TestResult))
    for test in (each for each in tests if isinstance(each, RenderedTest)):  # a unit test reads no table
        read |= {each: executor.pinned[each] for each in inputs.of(test) if each in executor.pinned}
    asking = {model.unique_id for model in rendered.models if model.asks_lake}
    loose = {*executor.replanned, *asking} if executor.hooks is None else built.keys()
    return TablesOfRun(built, read, frozenset(loose))


def passed_tests(executor: Executor, result: RunResult) -> frozenset[str]:
    """Return the tests that found nothing, or only what their severity lets through, in the tables of the run."""
    tests = (each for each in result.results if isinstance(each, TestResult))
    passed = frozenset(each.node.unique_id for each in tests if each.status in ("pass", "warn"))
    return passed - executor.replanned  # which may have read other commits
