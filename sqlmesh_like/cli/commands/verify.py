"""`sml verify`: compare tables with a recompute, or with their database. Owns the command and its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import click

from sqlmesh_like.app.loading.loaded import Loaded
from sqlmesh_like.app.operations.verification.source_verification import (
    named_sources,
    repair_sources,
    verify_sources,
)
from sqlmesh_like.app.operations.verification.table_verification import (
    SAMPLED_KEYS,
    Verification,
    new_sample,
    verify_tables,
)
from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
from sqlmesh_like.cdc.sources.database.comparison.repair import why_not_repaired
from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest
from sqlmesh_like.cli.context import make_output, open_project
from sqlmesh_like.cli.ingest_log import IngestLog
from sqlmesh_like.cli.options import Flags, in_environment, shared_options
from sqlmesh_like.cli.printing.output import LogLevel, LogStep, Output
from sqlmesh_like.errors import UsageError
from sqlmesh_like.project.nodes import Source
from sqlmesh_like.run.plain_values import plain
from sqlmesh_like.run.ports import ComparedKeys, RowDifference, Sample


@click.command("verify")
@shared_options  # above its own options, so that `--sample` is not the one that dbt has
@in_environment
@click.argument("models", nargs=-1)
@click.option("--limit", type=int, default=20, help="Differing rows to print per table.")
@click.option("--sample", "is_sampled", is_flag=True, help="Compare only the rows of some random keys of each table.")
@click.option(
    "--keys", type=click.IntRange(1), metavar="NUMBER", help=f"Keys of a table in a sample (default: {SAMPLED_KEYS})."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), metavar="NUMBER", help="Compare the keys of an earlier sample."
)
@click.option(
    "--share", type=click.FloatRange(0, 100, min_open=True), default=100.0, metavar="PERCENT",
    help="Of a source: compare so much of its tables, in chunks of the key that --seed chooses.",
)  # fmt: skip
@click.option(
    "--max-rows-per-second", type=click.IntRange(1), metavar="NUMBER", help="Of a source: read its database no faster."
)
@click.option("--repair", "is_repaired", is_flag=True, help="Of a source: read the rows that differ again.")
def command(
    flags: Flags,
    models: tuple[str, ...],
    limit: int,
    is_sampled: bool,
    keys: int | None,
    seed: int | None,
    share: float,
    max_rows_per_second: int | None,
    is_repaired: bool,
) -> int:
    """Compare maintained tables with a full recompute at each table's own frontier and clock.

    For models with hand-written incremental SQL, it shows the rows that this SQL lost. A sample needs no JVM where
    DuckDB is proven to compute what Spark would. A table that differs is rebuilt by `sml repair`.

    `-s source:shop` compares the tables of a source that reads a database with that database, value by value. With
    --repair, rows that differ are read again and ingested like events of its log; then the tables are compared again.
    A table of which a column could not be compared is a warning (WARN): exit code 0, and 1 with --warn-error.
    """
    loaded, output = open_project(replace(flags, select=(*flags.select, *models))), make_output(flags)
    sources = named_sources(loaded)
    if not is_sampled and (keys is not None or (seed is not None and not sources)):
        raise UsageError("--keys and --seed describe a sample", hint="add --sample")
    if not sources and (share < 100 or max_rows_per_second is not None):
        raise UsageError("--share and --max-rows-per-second are for sources", hint="select one: -s source:shop")
    if not sources and is_repaired:
        raise UsageError("--repair is for sources", hint="select one: -s source:shop; tables of models: sml repair")
    if sources and flags.environment is not None:
        raise UsageError("an environment has no sources of its own", hint="leave -e out")
    request = ComparisonRequest(limit, max_rows_per_second, share / 100, seed or 0)
    compare = partial(verify_sources, loaded, request=request, on_compared=partial(_print_source, output))
    compared = compare(sources)
    if is_repaired and any(each.status == "fail" for each in compared):
        compared = _repair(loaded, output, sources, compared, compare)
    results: tuple[Verification, ...] = ()
    if not sources or loaded.select_nodes("model"):
        results = _verify_models(loaded, output, limit, new_sample(keys or SAMPLED_KEYS, seed) if is_sampled else None)
    statuses = [*(each.status for each in compared), *(each.status for each in results)]
    output.end(statuses)
    if "fail" in statuses or any(each.status == "error" for each in results):
        return 1
    return 2 if "error" in statuses else 0


def _repair(
    loaded: Loaded,
    output: Output,
    sources: tuple[Source, ...],
    compared: tuple[TableComparison, ...],
    compare: Callable[[tuple[Source, ...]], tuple[TableComparison, ...]],
) -> tuple[TableComparison, ...]:
    """Repair what differs, and compare these tables again. Returns the last result of each table."""
    wanted = []
    for each in compared:
        if each.status == "fail":
            why = why_not_repaired(each)
            if why is None:
                wanted.append(each)
            else:
                for line in str(why).splitlines():
                    output.line(line, "error")
    if not wanted:
        return compared
    repair = repair_sources(loaded, wanted, IngestLog(output))
    output.line(f"Read again: {repair.rows} rows; deleted, because the database does not have them: {repair.deletes}")
    if repair.changed:
        output.line(f"  {repair.changed} rows have changed meanwhile: their events were ingested")
    if repair.left:
        output.line(
            f"  {repair.left} rows are left: they have only a key, and `order_by` decides between versions", "warn"
        )
    again = {each.table.unique_id for each in wanted}
    chosen = (replace(s, tables=tuple(table for table in s.tables if table.unique_id in again)) for s in sources)
    results = compare(tuple(source for source in chosen if source.tables))
    for each in results:
        if each.status == "fail" and each.table.ingest is not None and each.table.ingest.order_by:
            output.line(f"  {each.table.table} keeps a row whose `order_by` is later than that of the database", "warn")
    return (*(each for each in compared if each.table.unique_id not in again), *results)


def _verify_models(loaded: Loaded, output: Output, limit: int, sample: Sample | None) -> tuple[Verification, ...]:
    if sample is not None:
        output.line(f"Comparing {sample.keys} random keys of each table; the same ones again: --seed {sample.seed}")
    return verify_tables(loaded, limit, lambda number, total, each: _print(output, number, total, each), sample)


def _print_source(output: Output, number: int, total: int, result: TableComparison) -> None:
    # How many columns the closing line of a table is not about.
    missing = len(result.uncompared)
    left_out = f", without {missing} column{'s' if missing > 1 else ''}" if missing else ""
    counted = f" ({'a sample of ' if result.sampled else ''}{result.rows} rows{left_out})"
    step = LogStep(number, total, "source", f"source {result.table.table}{counted if result.error is None else ''}")
    count = len(result.uncompared) if result.status == "warn" else result.different
    output.test_result(step, result.status, count, result.seconds)
    for line in (result.error or "").splitlines():
        output.line(f"  {line}", "error")
    for line in _source_lines(result):
        output.line(line, "error")
    if result.unread:
        source = result.table.source_name
        output.line(
            f"  {result.unread} rows have changes in the log that the table has not read, and are not compared:"
            f" sml ingest -s source:{source}, then verify again",
            "warn",
        )
    if result.uncompared:
        level: LogLevel = "warn" if result.status == "warn" else "info"
        output.line(f"  not compared: {', '.join(map(str, result.uncompared))}", level)


def _source_lines(result: TableComparison) -> Iterator[str]:
    for row in result.examples:
        if row.only is not None:
            yield f"  {row.key}: only in the {row.only}"
        elif row.columns:
            for column in row.columns:
                yield f"  {row.key}: {column.name} is {column.database} in the database, {column.lake} in the lake"
        elif row.copies == 1:
            yield f"  {row.key}: differed when it was compared; its shown values are the same now"
        if row.copies > 1:
            yield f"  {row.key}: {row.copies} rows in the lake"
    if result.different > len(result.examples):
        yield f"  … and {result.different - len(result.examples)} more rows"
    if result.left:
        yield f"  … and more in {result.left} rows that differ in sum and were not compared one by one"
    if result.status == "fail":
        source = result.table.source_name
        yield f"  read these rows again: sml verify -s source:{source} --repair"


def _print(output: Output, number: int, total: int, result: Verification) -> None:
    difference = result.difference
    parts = [_keys(difference.keys)] if difference is not None and difference.keys is not None else []
    if (frozen := result.model.config.frozen_before) is not None:
        parts.append(f"from {frozen} on")
    compared = f" ({', '.join(parts)})" if parts else ""
    step = LogStep(number, total, "table", f"table {result.model.table}{compared}")
    output.test_result(step, result.status, difference.total if difference else 0, result.seconds)
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
