"""`sml run`: bring the selected models up to date. Owns the command; `run.executor` does it."""

from __future__ import annotations

from time import perf_counter

import click

from sqlmesh_like.cli.context import Loaded, load, make_output
from sqlmesh_like.cli.lake import Lake, clock, locked, open_lake
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.output import Output, Step
from sqlmesh_like.errors import NodeError, SelectionError
from sqlmesh_like.render.rendered import RenderedModel
from sqlmesh_like.run.executor import Executor
from sqlmesh_like.run.retention import due
from sqlmesh_like.run.result import ModelResult, RunResult


@click.command("run")
@click.option("--now", help="Clock of the run, ISO 8601 (default: the machine's).", metavar="TIME")
@shared_options
def command(flags: Flags, now: str | None) -> int:
    """Bring the selected models up to date, each at a cost that follows the change."""
    started = perf_counter()
    loaded = load(flags, now=clock(now))
    models = [node.unique_id for node in loaded.selected("model")]
    if not models:
        raise SelectionError("the selection holds no model", hint="`sml ls --resource-type model` lists them")
    output = make_output(flags)
    with locked(loaded, "run"):
        result = run_models(open_lake(loaded), models, output, now)
    output.end([found.status for found in result.results], problems(result))
    write_results(loaded, result, perf_counter() - started)
    return 0 if result.ok else 1


def run_models(lake: Lake, models: list[str], output: Output, now: str | None) -> RunResult:
    """Run models and print their lines; Spark is stopped afterwards."""
    loaded = lake.loaded
    executor = Executor(
        lake.planner(clock(now)), loaded.graph, lake.engine, Lines(output), loaded.target.threads, loaded.flags.fail_fast
    )
    try:
        result = executor.run(models)
        clean(lake, output)
        return result
    finally:
        lake.engine.stop()


def clean(lake: Lake, output: Output) -> None:
    """Remove history that no model needs any more; a failure is a warning, the tables are right."""
    ingested = {t.unique_id for source in lake.loaded.project.sources if source.ingest for t in source.tables if t.ingest}
    owned = [unique_id for unique_id in lake.catalog.places if unique_id in ingested or not unique_id.startswith("source.")]
    for cleaning in due(lake.catalog, owned):
        try:
            lake.engine.clean(cleaning.uri, cleaning.retain)
        except NodeError as error:
            output.line(f"warning: {error}", "warn")


def problems(result: RunResult) -> list[str]:
    return [f"{found.model.name}: {found.message}" for found in result.results if found.status == "error"]


class Lines:
    """Prints a run's lines in dbt's format, with what the contract adds."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def started(self, number: int, total: int, model: RenderedModel) -> None:
        self._output.start(_step(number, total, model))

    def ended(self, number: int, total: int, result: ModelResult) -> None:
        step = _step(number, total, result.model)
        match result.status:
            case "success":
                self._output.success(step, _detail(result), result.seconds)
                self._explain_full_refresh(result)
            case "no-op":
                self._output.no_op(step, result.seconds)
            case "error":
                self._output.error(step, result.seconds)
            case "skipped":
                self._output.skip(step)

    def _explain_full_refresh(self, result: ModelResult) -> None:
        """Where a run must rescan it says why."""
        if result.strategy in ("full_refresh", "partition_rescan"):
            for found in dict.fromkeys(result.reasons):
                self._output.line(f"       {found.rule} {found.message}")


def _detail(result: ModelResult) -> str:
    return f"{result.strategy} {result.rows} rows" if result.strategy else "VIEW"


def _step(number: int, total: int, model: RenderedModel) -> Step:
    return Step(number, total, f"sql {model.config.materialized} model", str(model.table))


def write_results(loaded: Loaded, result: RunResult, elapsed: float) -> None:
    """Write run_results.json."""
    from sqlmesh_like.artifacts.run_results import NodeResult, write_run_results

    nodes = [
        NodeResult(
            unique_id=found.model.unique_id,
            status=found.status,
            message=found.message or _detail(found),
            execution_time=found.seconds,
            adapter_response={
                "strategy": found.strategy, "rows_affected": found.rows, "upserts": found.upserts,
                "deletes": found.deletes, "reasons": [{"rule": r.rule, "message": r.message} for r in found.reasons],
            },
        )
        for found in result.results
    ]  # fmt: skip
    write_run_results(loaded.target_folder / "run_results.json", nodes, elapsed, {})
