"""`sml watch`: ingest sources and run the models that read them, until stopped. Owns the command and its lines."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.watch_service import Monitoring, watch
from sqlmesh_like.cli.commands.ingest import METRICS
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.ingest_log import IngestLog, report_end
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_log import RunLog, problems
from sqlmesh_like.run.result import RunResult


@click.command("watch")
@click.option("--trigger", help="Time between batches, e.g. '5 seconds' (default: each source's).", metavar="TEXT")
@METRICS
@click.option("--listen", metavar="[HOST:]PORT", help="Answer /health and /metrics (Prometheus) over HTTP.")
@click.option("--alert", "hooks", multiple=True, metavar="HOOK", help="Command or https address that receives alerts.")
@click.option(
    "--alert-again",
    type=click.FloatRange(0),
    default=3600.0,
    metavar="SECONDS",
    help="Time before an alert is repeated.",
)
@click.option(
    "--alert-lag",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Lag of a table that causes an alert.",
)
@click.option(
    "--verify-share",
    type=click.FloatRange(0, 100),
    default=0.0,
    metavar="PERCENT",
    help="Share of the time in which samples of the tables are verified.",
)
@shared_options
def command(
    flags: Flags,
    trigger: str | None,
    metrics: tuple[str, ...],
    listen: str | None,
    hooks: tuple[str, ...],
    alert_again: float,
    alert_lag: float | None,
    verify_share: float,
) -> int:
    """Ingest events as they arrive and update the models that read them, until SIGTERM or Ctrl-C.

    An alert is sent for a failure, dead letters, a full refresh forced by lost history, lag, and a table that differs
    from its query in a sample, or from the database of its source: a command receives it as JSON on standard input, an
    address by POST.
    """
    loaded, output = open_project(flags), make_output(flags)
    root, monitoring = loaded.project.root, Monitoring(listen, hooks, alert_again, alert_lag, verify_share)
    result = watch(loaded, trigger, metrics, _WatchLog(output, root), monitoring)
    last = result.last_round
    statuses = [node_result.status for node_result in last.results]
    return report_end(output, result.reports, statuses, problems(last, root))


class _WatchLog(RunLog, IngestLog):
    """Prints the lines of ingestion and models; a round ends with its problems only, without an end block."""

    def watching(self, models: int) -> None:
        self._output.line(f"Watching {models} model{'' if models == 1 else 's'}; stop with Ctrl-C")

    def finished(self, result: RunResult) -> None:
        for problem in problems(result, self._root):
            self._output.line(problem, "error")
