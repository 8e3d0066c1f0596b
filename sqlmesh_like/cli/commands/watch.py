"""`sml watch`: ingests sources and runs the models that follow, until stopped. Owns the command and its lines."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.watch_service import watch
from sqlmesh_like.cli.commands.ingest import METRICS
from sqlmesh_like.cli.context import load, make_output
from sqlmesh_like.cli.ingest_log import IngestLog, report_end
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.run_log import RunLog, problems
from sqlmesh_like.run.result import RunResult


@click.command("watch")
@click.option("--trigger", help="Time between batches, e.g. '5 seconds' (default: each source's).", metavar="TEXT")
@METRICS
@shared_options
def command(flags: Flags, trigger: str | None, metrics: tuple[str, ...]) -> int:
    """Ingest events as they arrive and update the models that read them, until SIGTERM or Ctrl-C."""
    loaded, output = load(flags), make_output(flags)
    root = loaded.project.root
    result = watch(loaded, trigger, metrics, _WatchLog(output, root))
    last = result.last_round
    statuses = [node_result.status for node_result in last.results]
    return report_end(output, result.reports, statuses, problems(last, root))


class _WatchLog(RunLog, IngestLog):
    """The lines of ingestion and models; a round ends without a block of its own."""

    def watching(self, models: int) -> None:
        self._output.line(f"Watching {models} model{'' if models == 1 else 's'}; stop with Ctrl-C")

    def finished(self, result: RunResult) -> None:
        for problem in problems(result, self._root):
            self._output.line(problem, "error")
