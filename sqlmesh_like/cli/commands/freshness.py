"""`sml freshness`: how old the newest rows of sources are. Owns the command and its lines."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import click

from sqlmesh_like.app.operations.freshness import source_freshness
from sqlmesh_like.artifacts.sources import FreshnessResult
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import DisplayStatus, LogStep, Output
from sqlmesh_like.project.nodes import SourceTable


@click.command("freshness")
@click.option("-o", "--output", "path", metavar="FILE", help="Where to write the results (target/sources.json).")
@shared_options
def command(flags: Flags, path: str | None) -> int:
    """Compare the age of each source's newest rows with its `freshness`. The exit code is 1 if a source is stale."""
    started, loaded, output = perf_counter(), open_project(flags), make_output(flags)
    results = source_freshness(loaded, _Log(output), None if path is None else Path(path), started)
    if not results:
        output.line("Nothing to do: no selected source table has `freshness`.")
    outcomes = [_outcome(each) for each in results]
    output.end(outcomes, [f"{each.unique_id}: {each.error}" for each in results if each.error])
    return 1 if any(outcome in ("error", "fail") for outcome in outcomes) else 0


class _Log:
    def __init__(self, output: Output) -> None:
        self._output = output

    def started(self, number: int, total: int, table: SourceTable) -> None:
        self._output.start(LogStep(number, total, "freshness of", _name(table)))

    def ended(self, number: int, total: int, table: SourceTable, result: FreshnessResult) -> None:
        words = {"error": "ERROR STALE", "runtime error": "ERROR"}.get(result.status, result.status.upper())
        step = LogStep(number, total, "freshness", f"freshness of {_name(table)}")
        self._output.outcome(step, words, _outcome(result), result.seconds)


def _name(table: SourceTable) -> str:
    return f"{table.source_name}.{table.name}"


def _outcome(result: FreshnessResult) -> DisplayStatus:
    return "error" if result.status == "runtime error" else "fail" if result.status == "error" else result.status
