"""`sml publish`: send tables of models to their destinations. Owns the command and its lines; `publish` sends them."""

from __future__ import annotations

import click

from sqlmesh_like.app.operations.publishing import Publication, publish_tables
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, at_release, shared_options
from sqlmesh_like.cli.printing.output import DisplayStatus, LogStep, Output
from sqlmesh_like.render.rendered import RenderedModel


@click.command("publish")
@at_release
@shared_options
def command(flags: Flags, at: str | None) -> int:
    """Send the changed rows of published models to their destinations, as `sml run` does after each model.

    Use it after a failure, or after another destination was declared. Tables that are up to date are only checked. With
    --full-refresh, whole tables are sent.
    """
    loaded, output = open_project(flags), make_output(flags, bar=True)
    results = publish_tables(loaded, _Log(output), at)
    problems = [f"{each.model.name}: {each.error}" for each in results if each.error is not None]
    output.end(map(_status, results), problems)
    return 0 if not problems else 1


class _Log:
    def __init__(self, output: Output) -> None:
        self._output = output

    def started(self, number: int, total: int, model: RenderedModel) -> None:
        self._output.start(_step(number, total, model))

    def ended(self, number: int, total: int, result: Publication) -> None:
        step, status = _step(number, total, result.model), _status(result)
        if status == "no-op":
            self._output.no_op(step, result.seconds)
        else:
            words = "ERROR" if status == "error" else f"OK {' and '.join(_transfers(result))}"
            self._output.outcome(step, words, status, result.seconds)


def _step(number: int, total: int, model: RenderedModel) -> LogStep:
    return LogStep(number, total, "table", f"published {model.table}")


def _status(result: Publication) -> DisplayStatus:
    if result.error is not None:
        return "error"
    return "success" if _transfers(result) else "no-op"


def _transfers(result: Publication) -> list[str]:
    return [f"{each.rows} rows to {each.destination}" for each in result.sent if each.rows is not None]
