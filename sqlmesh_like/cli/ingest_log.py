"""The lines of an ingestion: sources, tables, skipped events, and the end block. Owns their texts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmesh_like import stop_signals
from sqlmesh_like.cdc.report import IngestReport, TableReport
from sqlmesh_like.cli.printing.output import DisplayStatus, Output
from sqlmesh_like.cli.printing.writer import style_text
from sqlmesh_like.project.nodes import Source

_WIDTH = 70
_NAMES = 5
"""Undeclared tables that a warning names."""


class IngestLog:
    """Prints the reports of an ingestion."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def reading(self, source: Source, *, dead_letters: bool = False) -> None:
        """Print the line before a source is ingested."""
        assert source.ingest is not None
        what = "the dead letters" if dead_letters else source.ingest.log_name
        self._output.line(f"Reading {what} of source {source.name}")

    def ingested(self, report: IngestReport) -> None:
        report_batch(report, self._output)


def report_batch(report: IngestReport, output: Output) -> None:
    """Print the lines of a batch, or of a whole ingestion: tables, changes of their columns, skipped events."""
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
    if report.unmatched:
        report_unmatched(report, output)
    if report.resolved:
        output.line(f"{report.resolved} dead letters resolved")
    if report.dead_letters:
        words = "line" if report.dead_letters == 1 else "lines"
        first = f"the first: {report.first_dead_letter}" if report.first_dead_letter else "with the reason"
        output.line(f"warning: {report.dead_letters} bad {words} in {report.dead_letter_table}, {first}", "warn")
        output.line(f"  `sml show {report.dead_letter_table}` prints them")


def report_unmatched(report: IngestReport, output: Output) -> None:
    """Print which declarations match nothing, and which tables may be meant."""
    undeclared = ", ".join(sorted(report.undeclared, key=lambda name: (-report.undeclared[name], name))[:_NAMES])
    more = f" and {len(report.undeclared) - _NAMES} more" if len(report.undeclared) > _NAMES else ""
    for table in report.unmatched:
        assert table.ingest is not None
        wanted = ".".join(filter(None, (table.ingest.database, table.ingest.table)))
        output.line(
            f"warning: {table.declared_at}: no event belongs to {table.table}, declared as {wanted}; "
            f"the skipped ones are of {undeclared}{more}",
            "warn",
        )
    output.line(
        "  if one of these is meant, correct `database` or `table` (a name, or a regular expression of whole names): "
        "the next `sml ingest` reads the skipped events again"
    )


def _line(index: int, total: int, table: TableReport, color: bool, seconds: float = 0.0) -> str:
    """Return a table's line in dbt's format for a finished node; `seconds`: total time of the batches.

    >>> from sqlmesh_like.names import TableName
    >>> _line(1, 3, TableReport(TableName("ods", "user"), upserts=2, seconds=0.61), False)
    '1 of 3 OK ingested ods.user .......................................... [2 upserts, 0 deletes in 0.61s]'
    """
    late = f", {table.late} late" if table.late else ""
    late += f", {table.retained} deletions left out" if table.retained else ""
    verb, detail, shade = {
        "success": ("OK ingested", f"{table.upserts} upserts, {table.deletes} deletes{late}", "green"),
        "no-op": ("NO-OP", f"{table.replayed} events were in already", None),
        "error": ("ERROR ingesting", "ERROR", "red"),
        "warn": ("WARN", f"no event could be ingested: {table.dead_letters} dead letters", "yellow"),
    }[_status(table)]
    timed = f"{detail} in {table.seconds:.2f}s{_pace(table, seconds)}"
    head = f"{index} of {total} {verb} {table.table} ".ljust(_WIDTH, ".")
    return f"{head} [{style_text(timed, shade) if color and shade else timed}]"


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
    if table.has_only_dead_letters:
        return "warn"
    return "no-op" if table.replayed and not (table.upserts or table.deletes or table.late) else "success"


def report_end(
    output: Output, reports: Sequence[IngestReport], others: Sequence[DisplayStatus] = (), problems: Sequence[str] = ()
) -> int:
    """Print the end block, including `others`, the outcomes of models; return the exit code, 0 or 1."""
    tables = [table for report in reports for table in report.tables]
    warnings: list[DisplayStatus] = ["warn" for report in reports for _ in report.unmatched]
    warnings += ["warn" for report in reports if report.dead_letters]
    if not tables and not warnings and not stop_signals.is_wished():
        output.line("Nothing new.")
    problems = [*(f"{table.table}: {table.error}" for table in tables if table.error), *problems]
    lost: list[DisplayStatus] = ["error" for report in reports if report.has_only_dead_letters]
    problems += [_only_dead_letters(report) for report in reports if report.has_only_dead_letters]
    output.end([*map(_status, tables), *warnings, *lost, *others], problems)
    return 1 if lost or any(report.failed for report in reports) or "error" in others else 0


def _only_dead_letters(report: IngestReport) -> str:
    return (
        f"source {report.source}: no event could be ingested, all became dead letters; "
        "correct their cause, then run: sml ingest --replay-dead-letters"
    )
