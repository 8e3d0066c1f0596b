"""`sml verify`: compare tables with a full recompute of their query. Owns the command and its lines."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlmesh_like.app.operations.verification import Verification, verify_tables
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import LogStep, Output
from sqlmesh_like.run.plain_values import plain
from sqlmesh_like.run.ports import RowDifference


@click.command("verify")
@click.argument("models", nargs=-1)
@click.option("--limit", type=int, default=20, help="Differing rows to print per table.")
@shared_options
def command(flags: Flags, models: tuple[str, ...], limit: int) -> int:
    """Compare maintained tables with a full recompute at each table's own frontier and clock.

    For models with hand-written incremental SQL, it shows the rows that this SQL lost.
    """
    loaded, output = open_project(replace(flags, select=(*flags.select, *models))), make_output(flags)
    results = verify_tables(loaded, limit, lambda number, total, each: _print(output, number, total, each))
    output.end([each.status for each in results])
    return 0 if all(each.status == "pass" for each in results) else 1


def _print(output: Output, number: int, total: int, result: Verification) -> None:
    step = LogStep(number, total, "table", f"table {result.model.table}")
    output.tested(step, result.status, result.difference.total if result.difference else 0, result.seconds)
    for line in [f"  {result.error}"] if result.difference is None else _lines(result.difference):
        output.line(line, "error")


def _lines(difference: RowDifference) -> list[str]:
    """Return the lines of a difference: `-` for rows only in the table, `+` for rows only in the recompute."""
    lines = []
    for sign, row in difference.rows:
        values = ", ".join(f"{name}={plain(value)!r}" for name, value in row.items())
        lines.append(f"  {'-' if sign < 0 else '+'} {values}")
    if difference.total > len(difference.rows):
        lines.append(f"  … and {difference.total - len(difference.rows)} more")
    return [*lines, "  (- only in the table, + only in the recompute)"] if lines else []
