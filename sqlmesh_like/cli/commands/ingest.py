"""`sml ingest`: ingest pending events. Owns the command; `app.operations.ingestion` ingests them."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.ingestion import IngestRequest, ingest
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.ingest_log import IngestLog, report_end
from sqlmesh_like.cli.options import Flags, shared_options

METRICS = click.option(
    "--metrics-file", "metrics", multiple=True, metavar="FILE", help="Metrics: x.prom Prometheus, else JSON."
)


@click.command("ingest")
@click.option("--continuous", is_flag=True, help="Run until stopped (SIGTERM or Ctrl-C ends after the batch).")
@click.option("--trigger", help="Time between batches of --continuous, e.g. '30 seconds'.", metavar="TEXT")
@click.option("--from", "start", help="Read again from earliest, latest or offsets as JSON (Kafka).", metavar="PLACE")
@click.option(
    "--resnapshot", "tables", multiple=True, help="Read all rows of a database's table again.", metavar="TABLE"
)
@click.option("--replay-dead-letters", "again", is_flag=True, help="Only ingest the dead letters again.")
@METRICS
@shared_options
def command(
    flags: Flags,
    continuous: bool,
    trigger: str | None,
    start: str | None,
    tables: tuple[str, ...],
    again: bool,
    metrics: tuple[str, ...],
) -> int:
    """Ingest all pending events, then stop. A selected table selects its whole source."""
    loaded, output = open_project(flags), make_output(flags)
    request = IngestRequest(continuous, trigger, start, again, metrics, again=tables)
    reports = ingest(loaded, request, IngestLog(output))
    return report_end(output, reports)
