"""`sml maintain`: table services. Owns the command and its lines; `app.operations.maintenance` runs them."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.maintenance import MaintenanceResult, maintain
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import LogStep, Output
from sqlmesh_like.plan.catalog import TablePlace


@click.command("maintain")
@click.option("--rebucket", is_flag=True, help="Rewrite tables whose files are too many or too large.")
@shared_options
def command(flags: Flags, rebucket: bool) -> int:
    """Compact merge-on-read tables and remove history that nothing needs.

    Commits that a model of the project has not read yet are kept for `retention_days` of the profile (7), and the last
    ten in any case. A model that is further behind is rebuilt in full by its next run.
    Tables that `sml` writes have a fixed number of files in each partition, so there is nothing to cluster. With
    `--rebucket`, a table that should have more or fewer files is rewritten in one commit; its rows do not change.
    """
    loaded, output = open_project(flags), make_output(flags)
    statuses = [each.status for each in maintain(loaded, _Log(output), rebucket=rebucket)]
    output.end(statuses)
    return 0 if "error" not in statuses else 1


class _Log:
    def __init__(self, output: Output) -> None:
        self._output = output

    def started(self, number: int, total: int, place: TablePlace) -> None:
        self._output.start(_step(number, total, place))

    def ended(self, number: int, total: int, result: MaintenanceResult) -> None:
        step = _step(number, total, result.place)
        match result.status:
            case "error":
                self._output.error(step, result.seconds)
                self._output.line(f"  {result.error}", "error")
            case "no-op":
                self._output.no_op(step, result.seconds)
            case "success":
                self._output.success(step, ", ".join(result.done), result.seconds)


def _step(number: int, total: int, place: TablePlace) -> LogStep:
    return LogStep(number, total, "table", str(place.table))
