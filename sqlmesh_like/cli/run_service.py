"""What `run`, `seed`, `test` and `build` have in common. Owns the way from flags to exit code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from time import perf_counter

from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.cli.clean_tables import clean
from sqlmesh_like.cli.context import Loaded, load, make_output
from sqlmesh_like.cli.hooks import end_context, hooks_of
from sqlmesh_like.cli.options import Flags
from sqlmesh_like.cli.preflight import check_before_run
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.cli.resource_types import ALL_TYPES, ResourceTypes
from sqlmesh_like.cli.run_log import RunLog, problems, write_results
from sqlmesh_like.cli.wiring.lake import Lake, clock, lake_lock, open_lake
from sqlmesh_like.cli.wiring.publish_setup import publisher_of
from sqlmesh_like.errors import SelectionError
from sqlmesh_like.plan.graph import ResourceType
from sqlmesh_like.run.executor import Executor
from sqlmesh_like.run.result import RunResult
from sqlmesh_like.run.schedule import Pace, Schedule, needs_of
from sqlmesh_like.run.seeds import SeedTable, read_seed
from sqlmesh_like.run.unit_tests import UnitWork

COMMAND_TYPES: Mapping[str, tuple[ResourceType, ...]] = {
    "seed": ("seed",),
    "run": ("model",),
    "test": ("test", "unit_test"),
    "snapshot": ("snapshot",),
    "build": ("seed", "model", "snapshot", "test", "unit_test"),
}
"""What each command does something with."""
_READING = ("test", "unit_test")


def run_selected(
    flags: Flags,
    command: str,
    now: str | None = None,
    only: Collection[str] | None = None,
    *,
    store_failures: bool = False,
    units_on: str = "duckdb",
    types: ResourceTypes = ALL_TYPES,
) -> int:
    """Run what is selected for a command, in the order of the graph; the exit code, 0 or 1.

    `only` replaces a selection; `store_failures`: of every data test that does not say no; `units_on`:
    the engine of unit tests; `types`: of which nodes. Raises UsageError, before anything is read or written, where a
    seed or model is wrong.
    """
    started = perf_counter()
    loaded = load(flags, now=clock(now))
    loaded = loaded.storing_failures() if store_failures else loaded
    kinds = tuple(kind for kind in COMMAND_TYPES[command] if types.take(kind))
    selected = _selected(loaded, kinds) if only is None else list(loaded.graph.order(only))
    written = [unique_id for unique_id in selected if loaded.graph.nodes[unique_id].resource_type not in _READING]
    output = make_output(flags, bar=True)
    if not selected:  # a comparison that found nothing of this kind
        output.end([], [])
        return 0
    units = _unit_work(loaded, selected, clock(now), units_on)
    call = {"which": command, "now": now, "store_failures": store_failures, "engine": units_on}
    if units is not None and len(units.cases) == len(selected):
        return _finish(loaded, _run_units(loaded, selected, units, output), output, started, call)
    lake = _open_lake(loaded, selected, written, clock(now))
    seeds = _seeds(loaded, selected)
    models = [unique_id for unique_id in written if unique_id not in seeds]
    _warn_of_watermarks(loaded, selected, output)
    _report_deferred(lake, output)
    check_before_run(loaded, lake.catalog, models, seeds.values())
    with _lock(loaded, command, selected):
        planner, threads = lake.planner(clock(now)), loaded.target.threads
        if loaded.target.type == "duckdb":
            _build_above(lake, selected, seeds, clock(now))
        hooks = hooks_of(lake, written, clock(now), output)
        publisher = publisher_of(lake, written)
        executor = Executor(
            planner, loaded.graph, lake.engine, RunLog(output), threads, flags.fail_fast, seeds, units,
            runs_views=loaded.target.type == "duckdb", hooks=hooks, publisher=publisher,
        )  # fmt: skip
        try:
            if hooks is not None:
                hooks.around_run(end=False, more={})
            result = executor.run(selected)
            if hooks is not None:
                hooks.around_run(end=True, more=end_context(result))
            if written and result.has_written:  # where nothing was, cleaning alone would start Spark
                clean(lake, output)
        finally:
            output.close()
            if publisher is not None:
                publisher.close()
            lake.engine.stop()
    return _finish(loaded, result, output, started, call)


def _finish(loaded: Loaded, result: RunResult, output: Output, started: float, call: Mapping[str, object]) -> int:
    output.end([node_result.status for node_result in result.results], problems(result))
    write_results(loaded, result, perf_counter() - started, call)
    return 0 if result.ok else 1


def _unit_work(loaded: Loaded, selected: Collection[str], now: datetime, on: str) -> UnitWork | None:
    """The selected unit tests ready to run, None where there are none."""
    if not any(loaded.graph.nodes[unique_id].resource_type == "unit_test" for unique_id in selected):
        return None
    from sqlmesh_like.cli.wiring.unit_test_setup import unit_work  # a run without unit tests need not wait for DuckDB

    return unit_work(loaded, selected, now, on)


def _run_units(loaded: Loaded, selected: Collection[str], units: UnitWork, output: Output) -> RunResult:
    """Unit tests alone: no lake is opened, so that a machine without one can run them."""
    tests = [test for test in loaded.rendered.unit_tests if test.unique_id in selected]
    needs = needs_of(loaded.graph, [test.unique_id for test in tests])
    pace = Pace(loaded.target.threads, loaded.flags.fail_fast)
    try:
        return RunResult(Schedule(tests, needs, units, RunLog(output), pace).results())
    finally:
        output.close()


def _selected(loaded: Loaded, kinds: tuple[ResourceType, ...]) -> list[str]:
    selected = [node.unique_id for node in loaded.selected() if node.resource_type in kinds]
    if not selected and not loaded.is_comparing:
        what = " or ".join(kinds) or "node of the types that are asked for"
        hint = f"`sml ls --resource-type {kinds[0]}` lists them" if kinds else "see --resource-type"
        raise SelectionError(f"the selection holds no {what}", hint=hint)
    return selected


def _report_deferred(lake: Lake, output: Output) -> None:
    tables = [str(lake.catalog.places[unique_id].table) for unique_id in sorted(lake.catalog.borrowed)]
    if tables:
        output.line(f"read from {lake.loaded.flags.state}: {', '.join(tables)}")


def _open_lake(loaded: Loaded, selected: Collection[str], written: Collection[str], now: datetime) -> Lake:
    if loaded.target.type == "spark":
        return open_lake(loaded, written)
    from sqlmesh_like.cli.wiring.duck_lake import open_duck_lake  # a run on Spark need not wait for DuckDB

    return open_duck_lake(loaded, selected, now)


def _build_above(lake: Lake, selected: Collection[str], seeds: Mapping[str, SeedTable], now: datetime) -> None:
    """Nothing outlives a process there: what is read is built first, whether it is selected or not."""
    from sqlmesh_like.cli.wiring.duck_lake import build_tables

    build_tables(lake, lake.loaded.graph.above(selected).difference(selected), seeds, now)


def _seeds(loaded: Loaded, selected: Collection[str]) -> dict[str, SeedTable]:
    wanted = loaded.graph.above(selected) if loaded.target.type == "duckdb" else selected
    return {s.unique_id: read_seed(s, loaded.project.root) for s in loaded.rendered.seeds if s.unique_id in wanted}


def _lock(loaded: Loaded, command: str, selected: Collection[str]) -> AbstractContextManager[None]:
    """Tests that store nothing may run beside anything: they read pinned states. A lake in memory is nobody else's."""
    stores = any(test.table is not None and test.unique_id in selected for test in loaded.rendered.tests)
    is_alone = (command == "test" and not stores) or loaded.target.type == "duckdb"
    return nullcontext() if is_alone else lake_lock(loaded, "run")


def _warn_of_watermarks(loaded: Loaded, selected: Collection[str], output: Output) -> None:
    models = [m for m in loaded.rendered.models if m.unique_id in selected and m.is_handwritten_incremental]
    is_run = loaded.target.type == "spark"  # elsewhere every table is built once, in full
    run = [model.name for model in models if is_run and model.author_strategy is not None]
    for rule, names in (("CFG004", [m.name for m in models if m.name not in run]), ("CFG005", run)):
        if names:
            output.line(f"warning: {rule} {', '.join(names)}: {RULES[rule].meaning}", "warn")
