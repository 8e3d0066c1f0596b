"""`sml verify`: compare tables with a recompute of their query. Owns the command and its lines."""

from __future__ import annotations

from dataclasses import replace

import click

from sqlmesh_like.app.operations.verification.table_verification import (
    SAMPLED_KEYS,
    Verification,
    new_sample,
    verify_tables,
)
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.options import Flags, shared_options
from sqlmesh_like.cli.printing.output import LogStep, Output
from sqlmesh_like.errors import UsageError
from sqlmesh_like.run.plain_values import plain
from sqlmesh_like.run.ports import ComparedKeys, RowDifference


@click.command("verify")
@shared_options  # above its own options, so that `--sample` is not the one that dbt has
@click.argument("models", nargs=-1)
@click.option("--limit", type=int, default=20, help="Differing rows to print per table.")
@click.option("--sample", "is_sampled", is_flag=True, help="Compare only the rows of some random keys of each table.")
@click.option(
    "--keys", type=click.IntRange(1), metavar="NUMBER", help=f"Keys of a table in a sample (default: {SAMPLED_KEYS})."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), metavar="NUMBER", help="Compare the keys of an earlier sample."
)
def command(
    flags: Flags, models: tuple[str, ...], limit: int, is_sampled: bool, keys: int | None, seed: int | None
) -> int:
    """Compare maintained tables with a full recompute at each table's own frontier and clock.

    For models with hand-written incremental SQL, it shows the rows that this SQL lost. A sample needs no JVM where
    DuckDB is proven to compute what Spark would. A table that differs is rebuilt by `sml repair`.
    """
    if not is_sampled and (keys is not None or seed is not None):
        raise UsageError("--keys and --seed describe a sample", hint="add --sample")
    loaded, output = open_project(replace(flags, select=(*flags.select, *models))), make_output(flags)
    sample = new_sample(keys or SAMPLED_KEYS, seed) if is_sampled else None
    if sample is not None:
        output.line(f"Comparing {sample.keys} random keys of each table; the same ones again: --seed {sample.seed}")
    results = verify_tables(loaded, limit, lambda number, total, each: _print(output, number, total, each), sample)
    output.end([each.status for each in results])
    return 0 if all(each.status == "pass" for each in results) else 1


def _print(output: Output, number: int, total: int, result: Verification) -> None:
    difference = result.difference
    compared = f" ({_keys(difference.keys)})" if difference is not None and difference.keys is not None else ""
    step = LogStep(number, total, "table", f"table {result.model.table}{compared}")
    output.tested(step, result.status, difference.total if difference else 0, result.seconds)
    lines = [f"  {result.error}"] if difference is None else _lines(difference)
    if difference is not None and difference.total:
        lines.append(f"  rebuild it: sml repair {result.model.name}")
    for line in lines:
        output.line(line, "error")


def _keys(keys: ComparedKeys) -> str:
    """How much of a table was compared.

    >>> _keys(ComparedKeys(("city",), 20, is_all=False)), _keys(ComparedKeys(("city",), 3, is_all=True))
    ('20 keys', 'all keys')
    """
    return "all keys" if keys.is_all else f"{keys.count} keys"


def _lines(difference: RowDifference) -> list[str]:
    """Return the lines of a difference: `-` for rows only in the table, `+` for rows only in the recompute."""
    lines = []
    for sign, row in difference.rows:
        values = ", ".join(f"{name}={plain(value)!r}" for name, value in row.items())
        lines.append(f"  {'-' if sign < 0 else '+'} {values}")
    if difference.total > len(difference.rows):
        lines.append(f"  … and {difference.total - len(difference.rows)} more")
    return [*lines, "  (- only in the table, + only in the recompute)"] if lines else []
