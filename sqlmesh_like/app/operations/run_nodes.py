"""The common part of `run`, `seed`, `test`, `snapshot` and `build`. Owns the way from a selection to results and
artifacts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING

from sqlmesh_like import stop_signals
from sqlmesh_like.app.invocation import ALL_TYPES, ResourceTypes
from sqlmesh_like.app.lakes.clean_tables import clean
from sqlmesh_like.app.lakes.environment_lake import environment_folder
from sqlmesh_like.app.lakes.lake import HudiLake, Lake, clock, open_lake
from sqlmesh_like.app.lakes.lake_lock import HeldLocks, idle_changes, lake_lock
from sqlmesh_like.app.lakes.run_checks import check_run
from sqlmesh_like.app.lakes.table_locks import run_locks
from sqlmesh_like.app.loading.declared_hooks import has_hooks
from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.loading.query_record import store_queries
from sqlmesh_like.app.open_lineage.listener import with_lineage
from sqlmesh_like.app.operations.publishing import publisher_of
from sqlmesh_like.app.operations.releases.release_after_run import (
    makes_release,
    publisher_of_run,
    release_after_run,
    require_readable_releases,
)
from sqlmesh_like.app.operations.run_results import write_results
from sqlmesh_like.app.reporter import RunListener
from sqlmesh_like.artifacts.files import require_writable
from sqlmesh_like.environments.environment_file import environment_folders
from sqlmesh_like.errors import MachineError, NodeError, SqlError, UsageError
from sqlmesh_like.hudi.recovery import table_swap
from sqlmesh_like.hudi.stores.commit_guard import claim_table
from sqlmesh_like.plan.graph import ResourceType
from sqlmesh_like.plan.slices.sliced_build import SliceWish
from sqlmesh_like.publish.publisher import LakePublisher
from sqlmesh_like.run.executor import Executor, RunPolicy
from sqlmesh_like.run.hooks import Hooks
from sqlmesh_like.run.result import RunResult
from sqlmesh_like.run.schedule import Listener, Pace, Schedule, needs_of
from sqlmesh_like.run.seeds import SeedTable

if TYPE_CHECKING:  # what has nothing to do imports none of it
    from sqlmesh_like.run.unit_tests import UnitWork

COMMAND_TYPES: Mapping[str, tuple[ResourceType, ...]] = {
    "seed": ("seed",),
    "run": ("model",),
    "test": ("test", "unit_test"),
    "snapshot": ("snapshot",),
    "build": ("seed", "model", "snapshot", "test", "unit_test", "exposure", "saved_query"),
}
"""Types of nodes that each command runs; exposures and saved queries are only reported, as in dbt."""
_TABLES = ("incremental", "table")
_UNBUILT = ("exposure", "saved_query")
_READING = ("test", "unit_test", *_UNBUILT)


@dataclass(frozen=True)
class RunRequest:
    """The request of a run. `command` determines the types of nodes; `only`, unique ids, replaces a selection.

    `now` is its time, ISO 8601; `store_failures`: of every data test that does not opt out; `units_on`: the engine of
    unit tests; `types`: restricts the types of nodes further; `advances`: tables store that they have read each change,
    also one without effect. `slices`: into how many slices builds are divided; `backfill`: FROM..TO, the partitions
    that are computed again.
    """

    command: str
    now: str | None = None
    only: Collection[str] | None = None
    store_failures: bool = False
    units_on: str = "duckdb"
    types: ResourceTypes = ALL_TYPES
    advances: bool = False
    slices: int | None = None
    backfill: str | None = None

    @property
    def call(self) -> Mapping[str, object]:
        """The options that `sml retry` repeats."""
        return {
            "which": self.command, "now": self.now, "store_failures": self.store_failures, "engine": self.units_on,
            **{name: value for name in ("slices", "backfill") if (value := getattr(self, name)) is not None},
        }  # fmt: skip


def run_nodes(loaded: Loaded, request: RunRequest, listener: RunListener, started: float | None = None) -> RunResult:
    """Run the selected nodes in the order of the graph, and write run_results.json and manifest.json.

    `started` is when the call began, by `perf_counter`. Errors of nodes are in their results; before anything is
    written, raises SelectionError where the selection matches nothing, SqlError where no table could be built, and
    MachineError where the target folder or the warehouse cannot be written; NodeError where only the artifacts could
    not be written.
    """
    started = perf_counter() if started is None else started
    loaded = loaded.storing_failures() if request.store_failures else loaded
    if loaded.invocation.environment is not None:
        environment_folder(loaded, loaded.invocation.environment)
    require_writable(loaded.target_folder)
    selected = _select_nodes(loaded, request)
    if request.backfill is not None:
        _require_partitions(loaded, selected, request.backfill)
    if not selected:  # none of these types: a warning says so
        listener.finished(RunResult())
        if not loaded.graph.nodes:  # as in dbt, for who reads the artifacts of each call
            write_results(loaded, RunResult(), perf_counter() - started, request.call)
        return RunResult()
    listener = with_lineage(loaded, request.command, listener)
    units = _unit_work(loaded, selected, clock(request.now), request.units_on)
    if units is not None and len(units) == len(selected):
        result = _run_units(loaded, selected, units, listener)
    else:
        result = _run_on_lake(loaded, request, selected, units, listener)
    listener.finished(result)
    try:
        write_results(loaded, result, perf_counter() - started, request.call)
    except MachineError as error:
        hint = f"the nodes ended as reported, but `sml retry` does not know it; {error.hint}"
        raise NodeError(error.message, hint=hint) from error
    return result


def _run_on_lake(
    loaded: Loaded, request: RunRequest, selected: Sequence[str], units: UnitWork | None, listener: RunListener
) -> RunResult:
    now = clock(request.now)
    written = [unique_id for unique_id in selected if loaded.graph.nodes[unique_id].resource_type not in _READING]
    if loaded.invocation.environment is not None:
        return _run_in_environment(loaded, request, selected, units, listener, now)
    if loaded.target.type == "duckdb":
        return _run_in_memory(loaded, request, selected, written, units, listener, now)
    require_readable_releases(loaded, request.command)
    if environments := list(environment_folders(loaded.target.warehouse)):
        from sqlmesh_like.app.operations.environments.promotion import complete_promotions

        complete_promotions(loaded, environments)
    lake, (seeds, unread) = open_lake(loaded, written), loaded.read_seeds(selected)
    with ExitStack() as listed:
        idle = idle_changes(loaded)
        listed.enter_context(lake.catalog.keep([*selected, *loaded.graph.above(selected)]))
        broken = check_run(lake, selected, written, seeds, listener.notify, unread)
        hooks, publisher = _hooks(lake, written, now, request.command, selected), publisher_of(lake, written)
        executor = _executor(lake, now, listener, seeds, units, broken, written, request, advances=request.advances)
        executor.hooks, executor.publisher = hooks, publisher_of_run(lake, publisher)
        executor.register = lake.engine.register if loaded.target.catalog != "none" else None
        executor.policy = replace(executor.policy, notes_tables=makes_release(loaded, request.command))
        with _lock(lake, request.command, selected, executor, publisher) as held:
            if hooks is not None or not held.are_next_after(idle):
                listed.close()  # tables may have been written since they were listed: the executor lists them again
            try:
                if hooks is not None:
                    hooks.around_run(end=False, more={})
                result = executor.run(selected)
                listed.close()
                store_queries(loaded.entry_path, executor.planner.queries, loaded.rendered)
                if hooks is not None:
                    from sqlmesh_like.app.operations.hooks import end_context

                    hooks.around_run(end=True, more=end_context(result))
                result = release_after_run(
                    lake, request.command, executor, result, publisher, is_forced=request.advances
                )
                # Where nothing was written, Spark would start only for cleaning.
                # It is not known which history a model with a broken template still needs.
                if written and result.has_written and not stop_signals.is_wished() and not loaded.rendered.errors:
                    loaded.reporter.phase("removing history that nothing needs")
                    clean(lake, held, listener.notify)
            finally:
                if publisher is not None:
                    publisher.close()
                lake.engine.stop()
    return result


def _hooks(
    lake: HudiLake, written: Sequence[str], now: datetime, command: str, selected: Sequence[str]
) -> Hooks | None:
    if not has_hooks(lake.loaded, written):
        return None
    from sqlmesh_like.app.operations.hooks import hooks_of  # what renders them is not needed otherwise

    return hooks_of(lake, written, now, command, selected)


def _run_in_environment(
    loaded: Loaded,
    request: RunRequest,
    selected: Sequence[str],
    units: UnitWork | None,
    listener: RunListener,
    now: datetime,
) -> RunResult:
    """Run beside production: no release is made, nothing is published, and no history is removed."""
    from sqlmesh_like.app.operations.environments.environment_run import environment_of_run, note_run

    seeds, unread = loaded.read_seeds(selected)
    with environment_of_run(loaded, request.command, selected, seeds, unread, now) as (lake, chosen):
        written = [unique_id for unique_id in chosen if loaded.graph.nodes[unique_id].resource_type not in _READING]
        broken = check_run(lake, chosen, written, seeds, listener.notify, unread)
        executor = _executor(lake, now, listener, seeds, units, broken, written, request, advances=True)
        try:
            result = executor.run(chosen)
            store_queries(loaded.entry_path, executor.planner.queries, loaded.rendered)
        finally:
            lake.engine.stop()
        note_run(lake, executor, result)
    return result


def _run_in_memory(
    loaded: Loaded,
    request: RunRequest,
    selected: Sequence[str],
    written: Sequence[str],
    units: UnitWork | None,
    listener: RunListener,
    now: datetime,
) -> RunResult:
    """Run on a `duckdb` target: no table outlives the process, so tables that are only read are built first."""
    from sqlmesh_like.app.lakes.duck_lake import (  # a run on Spark need not import DuckDB
        build_tables,
        open_duck_lake,
        without_rows,
    )
    from sqlmesh_like.app.operations.hooks import hooks_in_memory

    wanted = [unique_id for unique_id in selected if loaded.graph.nodes[unique_id].resource_type not in _UNBUILT]
    lake, above = open_duck_lake(loaded, wanted, now), loaded.graph.above(wanted)
    seeds, unread = loaded.read_seeds(above)
    unread |= without_rows(loaded, wanted)
    broken = check_run(lake, selected, written, seeds, listener.notify, unread)
    # A selected node may be above one that is only read: it is then built twice, first for its reader.
    build_tables(lake, loaded.graph.above(above.difference(selected)), seeds, now)
    executor = _executor(lake, now, listener, seeds, units, broken, written, request, runs_views=True)
    executor.hooks = hooks_in_memory(lake, written, now, request.command, selected, listener.notify)
    try:
        return executor.run(selected)
    finally:
        lake.engine.stop()


def _executor(
    lake: Lake,
    now: datetime,
    listener: RunListener,
    seeds: Mapping[str, SeedTable],
    units: UnitWork | None,
    broken: Mapping[str, SqlError],
    written: Sequence[str],
    request: RunRequest,
    *,
    runs_views: bool = False,
    advances: bool = False,
) -> Executor:
    loaded = lake.loaded
    pace = Pace(loaded.target.threads, loaded.invocation.fail_fast)
    policy = RunPolicy(pace, runs_views, warnings_fail=loaded.invocation.warn_error, backfill=request.backfill)
    planner = replace(lake.planner(now), advances=advances)
    if request.slices is not None and planner.slices is not None:
        planner = replace(planner, slices=SliceWish(request.slices, is_strict=len(written) == 1))
    return Executor(
        planner, loaded.graph, lake.engine, listener, policy, seeds, units, claim=claim_table, moves=table_swap,
        notify=listener.notify, broken=broken,
    )  # fmt: skip


def _unit_work(loaded: Loaded, selected: Collection[str], now: datetime, on: str) -> UnitWork | None:
    """Return the selected unit tests ready to run, None where there are none."""
    if not any(loaded.graph.nodes[unique_id].resource_type == "unit_test" for unique_id in selected):
        return None
    from sqlmesh_like.app.operations.unit_test_setup import (
        unit_work,  # a run without unit tests need not import DuckDB
    )

    return unit_work(loaded, selected, now, on)


def _run_units(loaded: Loaded, selected: Collection[str], units: UnitWork, listener: Listener) -> RunResult:
    """Run only unit tests: no lake is opened, so they run on a machine without one."""
    tests = [test for test in loaded.rendered.unit_tests if test.unique_id in selected]
    needs = needs_of(loaded.graph, [test.unique_id for test in tests])
    pace = Pace(loaded.target.threads, loaded.invocation.fail_fast)
    return RunResult(Schedule(tests, needs, units, listener, pace).results())


def _select_nodes(loaded: Loaded, request: RunRequest) -> Sequence[str]:
    if request.only is not None:
        return list(loaded.graph.order(request.only))
    kinds = tuple(kind for kind in COMMAND_TYPES[request.command] if request.types.take(kind))
    selected = [node.unique_id for node in loaded.select_nodes() if node.resource_type in kinds]
    if not selected and not loaded.is_comparing and loaded.graph.nodes:
        what = " or ".join(kinds) or "node of the types that are asked for"
        hint = f" (`sml ls --resource-type {kinds[0]}` lists them)" if kinds else ""
        loaded.reporter.notify(f"warning: the selection holds no {what}: nothing to do{hint}", "warn")
    return selected


def _require_partitions(loaded: Loaded, selected: Collection[str], backfill: str) -> None:
    """Raises UsageError where partitions of the selected models cannot be recomputed, whatever the lake holds."""
    from sqlmesh_like.delta.slices.partition_range import split_words

    try:
        split_words(backfill)
    except ValueError as error:
        raise UsageError(f"--backfill: {error}", hint="e.g. --backfill 2024-01-01..2024-01-31") from error
    if loaded.invocation.full_refresh:
        raise UsageError("--backfill and --full-refresh exclude each other", hint="a full refresh recomputes all rows")
    if loaded.target.type != "spark":
        raise UsageError("--backfill needs tables that outlive a call", hint="choose a target of type spark with -t")
    tables = [m for m in loaded.rendered.models if m.unique_id in selected and m.config.materialized in _TABLES]
    if without := [model.name for model in tables if not model.config.partition_by]:
        hint = "select models that have partition_by with --select"
        raise UsageError(f"--backfill: no partitions have {', '.join(sorted(without))}", hint=hint)


def _lock(
    lake: HudiLake, command: str, selected: Collection[str], executor: Executor, publisher: LakePublisher | None
) -> AbstractContextManager[HeldLocks]:
    """Return the locks of a run; tests that store nothing and have no hooks need none: they read pinned states."""
    loaded = lake.loaded
    stores = any(test.table is not None and test.unique_id in selected for test in loaded.rendered.tests)
    if command == "test" and not stores and executor.hooks is None:
        return nullcontext(HeldLocks(loaded.target.warehouse))
    locks = run_locks(lake, selected, publisher, has_hooks=executor.hooks is not None)
    return lake_lock(loaded, command, locks, claims=True)
