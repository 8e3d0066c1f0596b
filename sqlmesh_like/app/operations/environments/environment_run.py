"""The lake of a run in an environment. Owns making the environment's tables before it, and what is noted after it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from sqlmesh_like.app.lakes.environment_lake import (
    environment_folder,
    find_environment,
    in_environment,
    require_own,
    require_settled,
)
from sqlmesh_like.app.lakes.lake import HudiLake
from sqlmesh_like.app.lakes.lake_lock import lake_lock
from sqlmesh_like.app.lakes.release_lake import production_lake
from sqlmesh_like.app.lakes.table_locks import environment_lock, environment_locks
from sqlmesh_like.app.loading.declared_hooks import has_hooks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.environments.members import Members, plan_members, with_readers
from sqlmesh_like.app.operations.environments.text_comparison import TextComparison
from sqlmesh_like.app.operations.releases.release_after_run import passed_tests
from sqlmesh_like.environments.environment import Environment
from sqlmesh_like.environments.environment_file import EnvironmentFolder
from sqlmesh_like.errors import UsageError
from sqlmesh_like.fault_points import fault_point
from sqlmesh_like.hudi.cloning.clone import clone_table
from sqlmesh_like.releases.release import created_now
from sqlmesh_like.run.executor import Executor
from sqlmesh_like.run.result import BLOCKING, ModelResult, RunResult, TestResult
from sqlmesh_like.run.seeds import SeedTable


@contextmanager
def environment_of_run(
    loaded: Loaded,
    command: str,
    selected: Sequence[str],
    seeds: Mapping[str, SeedTable],
    unread: Collection[str],
    now: datetime,
) -> Iterator[tuple[HudiLake, list[str]]]:
    """Hold the environment of the call, with the tables that the selected nodes need, and yield which of them to run.

    `unread`: selected seeds whose files cannot be read. Production is only read. Raises UsageError, before anything is
    made, for what an environment cannot have.
    """
    name = loaded.invocation.environment
    assert name is not None
    place = environment_folder(loaded, name)
    production = production_lake(loaded)
    if command == "test":
        with lake_lock(loaded, "test", environment_lock(name)):
            yield in_environment(production, find_environment(loaded, name)), list(selected)
        return
    with lake_lock(loaded, command, environment_locks(production, name, selected)):
        production.catalog.history.renew()
        known = place.read() or Environment(name, loaded.project.name, loaded.target.schema, created_now())
        require_own(loaded, known)
        require_settled(known)
        wanted = _without_snapshots(loaded, selected)
        members = plan_members(production, known, wanted, seeds, now)
        chosen = [*with_readers(production, members.environment, wanted, now)]
        _require_no_hooks(loaded, chosen)
        environment = _make_tables(loaded, production, place, members)
        _report(loaded, environment)
        broken = [unique_id for unique_id in selected if unique_id in unread]
        yield in_environment(production, environment), [*broken, *chosen]


def note_run(lake: HudiLake, executor: Executor, result: RunResult) -> None:
    """Note what a promotion may need to know: which data tests have passed, for which commits, and which tables are of
    their models' texts. The caller has the lock.
    """
    name = lake.loaded.invocation.environment
    assert name is not None
    place = environment_folder(lake.loaded, name)
    environment = place.read()
    if environment is not None:
        compared = _comparison_keys(lake, executor, environment, result)
        noted = replace(environment, passed=_tested_frontiers(lake, executor, environment, result), compared=compared)
        if noted != environment:
            place.write(noted)


def _tested_frontiers(
    lake: HudiLake, executor: Executor, environment: Environment, result: RunResult
) -> Mapping[str, Mapping[str, str]]:
    passed = passed_tests(executor, result)
    ended = {each.node.unique_id for each in result.results if isinstance(each, TestResult)}
    noted = {test: read for test, read in environment.passed.items() if test not in ended}
    for test in lake.loaded.rendered.tests:
        if test.unique_id in passed:
            read = lake.reads.of(test)
            states = {each: executor.pinned.get(each) or lake.catalog.state(each) for each in read}
            noted[test.unique_id] = {each: state.frontier or "" for each, state in states.items()}
    return noted


def _comparison_keys(
    lake: HudiLake, executor: Executor, environment: Environment, result: RunResult
) -> Mapping[str, str]:
    """The keys of comparisons with the texts of models that the run has brought up to date, and of those before."""
    texts = TextComparison(lake, environment.compared, lambda: executor.planner)
    noted = {name: key for name, key in environment.compared.items() if name in environment.tables}
    done = (each.model for each in result.results if isinstance(each, ModelResult) and each.status not in BLOCKING)
    for model in (model for model in done if model.unique_id in environment.tables):
        record, inputs = lake.catalog.state(model.unique_id).record, lake.catalog.states(lake.reads.of(model))
        key = None if record is None else texts.key(model, record, inputs)
        if record is not None and key is not None and texts.is_of_text(model, record, inputs):
            noted[model.unique_id] = key
    return noted


def _without_snapshots(loaded: Loaded, selected: Sequence[str]) -> list[str]:
    """Leave out snapshots: what they keep has come about in production, and no query gives it again."""
    snapshots = {model.unique_id for model in loaded.rendered.models if model.config.snapshot is not None}
    if count := len(snapshots.intersection(selected)):
        loaded.reporter.notify(f"{count} snapshot{'s' * (count != 1)} left out: environments read production's")
    return [unique_id for unique_id in selected if unique_id not in snapshots]


def _require_no_hooks(loaded: Loaded, chosen: Collection[str]) -> None:
    """Raises UsageError where a run of these nodes has hooks: their statements may write to production."""
    if has_hooks(loaded, chosen):
        hint = "leave their models out with --exclude; on-run-start and on-run-end are of the project's settings"
        raise UsageError("hooks cannot run in an environment: they may write to production's tables", hint=hint)


def _make_tables(loaded: Loaded, production: HudiLake, place: EnvironmentFolder, members: Members) -> Environment:
    """Clone what is to be cloned. Until all is there, the environment does not name what it is about to get.

    Returns it with the folders of what was made.
    """
    after, made = members.environment, members.made
    settled = {name: each for name, each in after.tables.items() if name not in made}
    kept = replace(after, tables=settled)
    place.write(kept)
    place.remove_tables(kept, [*members.dropped, *(after.tables[name].table for name in made)])
    new = {name: place.moved_in(after.tables[name]) for name in made}
    for number, (name, entry) in enumerate(new.items(), 1):
        if entry.base is not None:
            loaded.reporter.phase(f"cloning {number} of {len(made)}, {entry.table}")
            target = place.table_uri(entry.table, entry.place)
            clone_table(
                production.catalog.places[name].uri, entry.base, target, _read_by_others(production, name, made)
            )
    fault_point("environment.cloned")
    after = replace(after, tables={**after.tables, **new})
    place.write(after)
    return after


def _read_by_others(production: HudiLake, unique_id: str, made: Collection[str]) -> list[str]:
    """The commits of a table up to which others that are cloned have read it."""
    records = (production.catalog.state(name).record for name in made if name != unique_id)
    read = (record.frontier.get(unique_id) for record in records if record is not None)
    return sorted({frontier for frontier in read if frontier is not None})


def _report(loaded: Loaded, environment: Environment) -> None:
    names = sorted(entry.table for entry in environment.tables.values())
    listed = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    what = f"{listed}; all else is read from production" if names else "nothing differs from production"
    loaded.reporter.notify(f"environment {environment.name}: {what}")
