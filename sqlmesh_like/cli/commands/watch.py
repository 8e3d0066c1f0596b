"""`sml watch`: ingests sources and runs the models that follow, until stopped. `watch_loop` owns the rounds."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.sources.source_check import check_source, check_trigger
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.cli.commands.ingest import (
    METRICS,
    opening_line,
    report_batch,
    report_end,
    selected_sources,
    session_for,
)
from sqlmesh_like.cli.context import Loaded, load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.preflight import check_before_run
from sqlmesh_like.cli.printing.output import Output
from sqlmesh_like.cli.run_log import problems
from sqlmesh_like.cli.watch_loop import WatchLoop
from sqlmesh_like.cli.wiring.lake import Lake, lake_lock, open_lake, require_lake
from sqlmesh_like.cli.wiring.publish_setup import publisher_of
from sqlmesh_like.errors import SelectionError
from sqlmesh_like.project.nodes import Source

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session


@click.command("watch")
@click.option("--trigger", help="Time between batches, e.g. '5 seconds' (default: each source's).", metavar="TEXT")
@METRICS
@shared_options
def command(flags: Flags, trigger: str | None, metrics: tuple[str, ...]) -> int:
    """Ingest events as they arrive and update the models that read them, until SIGTERM or Ctrl-C."""
    loaded = load(flags)
    models = [node.unique_id for node in loaded.selected("model")]
    sources = _sources(loaded, models)
    for source in sources:
        check_source(loaded.project, source)
    check_trigger(trigger, continuous=True)
    check_before_run(loaded, open_lake(loaded, models).catalog, models)
    output = make_output(flags)
    with lake_lock(loaded, "ingest"), lake_lock(loaded, "run"), session_for(loaded, sources) as spark:
        lake = open_lake(loaded, models, spark)
        return _watch(spark, lake, models, sources, output, trigger, Metrics(metrics))


def _sources(loaded: Loaded, models: list[str]) -> list[Source]:
    """The ingested sources that are selected or that the selected models read."""
    require_lake(loaded)
    wanted = {node.unique_id for node in loaded.selected("source")}
    sources = selected_sources(loaded, wanted | loaded.graph.above(models))
    if not sources:
        hint = "give a source an `ingest:` block, or select a model that reads such a source"
        raise SelectionError("nothing to watch: no ingested source is selected", hint=hint)
    return sources


def _watch(
    spark: Session,
    lake: Lake,
    models: list[str],
    sources: list[Source],
    output: Output,
    trigger: str | None,
    metrics: Metrics,
) -> int:
    from sqlmesh_like.cdc.stream.continuous import run_until_stopped
    from sqlmesh_like.cdc.stream.ingest_run import open_run

    def on_batch(report: IngestReport) -> None:
        report_batch(report, output)
        metrics.report(report)
        rounds.on_batch(report)

    def gates() -> ExitStack:
        held = ExitStack()
        for run in runs:
            held.enter_context(run.gate)
        return held

    loaded = lake.loaded
    rounds = WatchLoop(lake, models, output, gates, publisher_of(lake, models))
    runs = [open_run(spark, loaded.project, loaded.target, source, on_batch) for source in sources]
    for source in sources:
        output.line(opening_line(source))
    output.line(f"Watching {len(models)} model{'' if len(models) == 1 else 's'}; stop with Ctrl-C")
    triggers = [trigger or (source.ingest.trigger if source.ingest else "") for source in sources]
    reports = run_until_stopped(runs, triggers, between=rounds)
    return report_end(output, reports, rounds.statuses(), problems(rounds.result))
