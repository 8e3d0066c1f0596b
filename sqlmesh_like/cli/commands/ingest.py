"""`sml ingest`: ingest pending events. Owns the command and its lines; `cdc.stream` does it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cdc.sources.source_check import check_source, check_start, check_trigger
from sqlmesh_like.cdc.stream.metrics import Metrics
from sqlmesh_like.cli.context import Loaded, load, make_output
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.download_progress import show_progress
from sqlmesh_like.cli.printing.output import DisplayStatus, Output
from sqlmesh_like.cli.wiring.lake import lake_lock, require_lake
from sqlmesh_like.errors import SelectionError, UsageError
from sqlmesh_like.project.nodes import Source

if TYPE_CHECKING:
    from sqlmesh_like.spark.jvm.session import Session

_WIDTH = 70
METRICS = click.option(
    "--metrics-file", "metrics", multiple=True, metavar="FILE", help="Metrics: x.prom Prometheus, else JSON."
)


@click.command("ingest")
@click.option("--continuous", is_flag=True, help="Go on until stopped (SIGTERM or Ctrl-C ends after the batch).")
@click.option("--trigger", help="Time between batches of --continuous, e.g. '30 seconds'.", metavar="TEXT")
@click.option("--from", "start", help="Read again from earliest, latest or offsets as JSON (Kafka).", metavar="PLACE")
@click.option("--replay-dead-letters", "again", is_flag=True, help="Ingest the dead letters again, nothing else.")
@METRICS
@shared_options
def command(
    flags: Flags, continuous: bool, trigger: str | None, start: str | None, again: bool, metrics: tuple[str, ...]
) -> int:
    """Ingest all pending events, then stop. A selected table selects its whole source."""
    loaded = load(flags)
    sources = _chosen(loaded)
    for source in sources:
        check_source(loaded.project, source)
        check_start(source, start)
    check_trigger(trigger, continuous=continuous)
    if again and (continuous or start):
        raise UsageError("--replay-dead-letters goes with neither --continuous nor --from")
    output = make_output(flags)
    measured = Metrics(metrics)
    with lake_lock(loaded, "ingest"), session_for(loaded, sources) as spark:
        if continuous:
            return report_end(output, _run_continuously(spark, loaded, sources, output, trigger, start, measured))
        if again:
            return report_end(output, list(_replay_dead_letters(spark, loaded, sources, output)))
        return report_end(output, list(_reports(spark, loaded, sources, output, start, measured)))


def _chosen(loaded: Loaded) -> list[Source]:
    require_lake(loaded)
    sources = selected_sources(loaded, {node.unique_id for node in loaded.selected("source")})
    if not sources:
        hint = "give a source an `ingest:` block, or select one that has it, e.g. -s source:shop"
        raise SelectionError("no ingested source is selected", hint=hint)
    return sources


def selected_sources(loaded: Loaded, wanted: Collection[str]) -> list[Source]:
    """The ingested sources that have a wanted table (by unique id)."""
    return [
        source
        for source in loaded.project.sources
        if source.ingest
        and (any(table.ingest and table.unique_id in wanted for table in source.tables) or _takes_all(loaded, source))
    ]


def _takes_all(loaded: Loaded, source: Source) -> bool:
    """Whether a source without tables that could be selected is meant: nothing was selected at all."""
    flags = loaded.flags
    return bool(source.ingest and source.ingest.discover) and not (flags.select or flags.exclude or flags.selector)


@contextmanager
def session_for(loaded: Loaded, sources: list[Source]) -> Iterator[Session]:
    """Spark with what these sources need, while the context is open."""
    # Imported here: `--help` and a wrong source must not wait for Spark.
    from sqlmesh_like.spark.jvm.session import start_session

    log_file = loaded.target_folder / "logs" / "spark.log"
    with_kafka = any(source.ingest and source.ingest.kafka is not None for source in sources)
    with show_progress() as progress:
        spark = start_session(loaded.target, log_file=log_file, progress=progress, with_kafka=with_kafka)
    try:
        yield spark
    finally:
        spark.stop()


def _reports(
    spark: Session, loaded: Loaded, sources: list[Source], output: Output, start: str | None, metrics: Metrics
) -> Iterator[IngestReport]:
    """Ingest source after source; each is logged before and after."""
    from sqlmesh_like.cdc.stream.ingest_run import ingest_source

    for source in sources:
        output.line(opening_line(source))
        report = ingest_source(spark, loaded.project, loaded.target, source, start, metrics.report)
        report_batch(report, output)
        yield report


def _replay_dead_letters(
    spark: Session, loaded: Loaded, sources: list[Source], output: Output
) -> Iterator[IngestReport]:
    """Ingest the dead letters of source after source again."""
    from sqlmesh_like.cdc.stream.replay import replay

    for source in sources:
        output.line(f"Reading the dead letters of source {source.name}")
        report = replay(spark, loaded.project, loaded.target, source)
        report_batch(report, output)
        yield report


def _run_continuously(
    spark: Session,
    loaded: Loaded,
    sources: list[Source],
    output: Output,
    trigger: str | None,
    start: str | None,
    metrics: Metrics,
) -> list[IngestReport]:
    """Ingest all sources side by side until a signal says stop or one of them fails."""
    from sqlmesh_like.cdc.stream.continuous import run_until_stopped
    from sqlmesh_like.cdc.stream.ingest_run import open_run

    for source in sources:
        output.line(opening_line(source))

    def on_batch(report: IngestReport) -> None:
        report_batch(report, output)
        metrics.report(report)

    runs = [open_run(spark, loaded.project, loaded.target, source, on_batch) for source in sources]
    triggers = [trigger or (source.ingest.trigger if source.ingest else "") for source in sources]
    return run_until_stopped(runs, triggers, start)


def opening_line(source: Source) -> str:
    """The line before a source is ingested."""
    assert source.ingest is not None
    place = source.ingest.files or "Kafka"
    return f"Reading {place} of source {source.name}"


def report_batch(report: IngestReport, output: Output) -> None:
    """The lines of a batch, or of a whole run: tables, changes of their columns, what was left out."""
    for index, table in enumerate(report.tables, start=1):
        output.line(
            _line(index, len(report.tables), table, output.color, report.seconds), "error" if table.error else "info"
        )
        for change in table.changes:
            output.line(f"  column of {table.table}: {change}")
    for table_name in report.discovered:
        output.line(f"discovered {table_name}: its events name its key")
    if report.skipped:
        output.line("Skipped lines: " + ", ".join(f"{count} {why}" for why, count in sorted(report.skipped.items())))
    if report.resolved:
        output.line(f"{report.resolved} dead letters resolved")
    if report.dead_letters:
        words = "line" if report.dead_letters == 1 else "lines"
        output.line(
            f"warning: {report.dead_letters} bad {words} in {report.dead_letter_table}, with the reason", "warn"
        )


def _line(index: int, total: int, table: TableReport, color: bool, seconds: float = 0.0) -> str:
    """dbt's line of a finished node; `seconds` is how long the batches took in all.

    >>> from sqlmesh_like.names import TableName
    >>> _line(1, 3, TableReport(TableName("ods", "user"), upserts=2, seconds=0.61), False)
    '1 of 3 OK ingested ods.user .......................................... [2 upserts, 0 deletes in 0.61s]'
    """
    late = f", {table.late} late" if table.late else ""
    verb, detail, shade = {
        "success": ("OK ingested", f"{table.upserts} upserts, {table.deletes} deletes{late}", "green"),
        "no-op": ("NO-OP", f"{table.replayed} events were in already", None),
        "error": ("ERROR ingesting", "ERROR", "red"),
    }[_status(table)]
    timed = f"{detail} in {table.seconds:.2f}s{_pace(table, seconds)}"
    head = f"{index} of {total} {verb} {table.table} ".ljust(_WIDTH, ".")
    return f"{head} [{click.style(timed, fg=shade) if color and shade else timed}]"


def _pace(table: TableReport, seconds: float) -> str:
    """
    >>> from sqlmesh_like.names import TableName
    >>> _pace(TableReport(TableName("ods", "user"), events=500, lag=2.4), 2.0)
    ', 250 events/s, lag 2s'
    """
    rate = f", {table.events / seconds:.0f} events/s" if table.events and seconds else ""
    return rate if table.lag is None else f"{rate}, lag {table.lag:.0f}s"


def _status(table: TableReport) -> DisplayStatus:
    if table.error:
        return "error"
    return "no-op" if table.replayed and not (table.upserts or table.deletes or table.late) else "success"


def report_end(
    output: Output, reports: list[IngestReport], others: Sequence[DisplayStatus] = (), problems: Sequence[str] = ()
) -> int:
    """The end block, with what else was done; the exit code, 0 or 1."""
    tables = [table for report in reports for table in report.tables]
    warnings: list[DisplayStatus] = ["warn" for report in reports if report.dead_letters]
    if not tables and not warnings:
        output.line("Nothing new.")
    problems = [*(f"{table.table}: {table.error}" for table in tables if table.error), *problems]
    output.end([*map(_status, tables), *warnings, *others], problems)
    return 1 if any(report.failed for report in reports) or "error" in others else 0
