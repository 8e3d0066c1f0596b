"""What an ingestion did, as frozen values. Owns the counts; the command prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlmesh_like.names import TableName


@dataclass(frozen=True)
class TableReport:
    """What one table ingested over all batches of a run. `late` events were older than what the table has.

    `changes` are those of its columns, in words. `events` are lines for it; `lag` is how long after the log had the
    newest of them the table had it, in seconds. `error`: why it is behind; it catches up by itself.
    """

    table: TableName
    upserts: int = 0
    deletes: int = 0
    late: int = 0
    seconds: float = 0.0
    error: str | None = None
    replayed: int = 0
    changes: tuple[str, ...] = ()
    events: int = 0
    lag: float | None = None

    def plus(self, other: TableReport) -> TableReport:
        """Both together; the last error stands."""
        return TableReport(
            self.table,
            self.upserts + other.upserts,
            self.deletes + other.deletes,
            self.late + other.late,
            self.seconds + other.seconds,
            other.error,
            self.replayed + other.replayed,
            (*self.changes, *other.changes),
            self.events + other.events,
            self.lag if other.lag is None else other.lag,
        )


@dataclass(frozen=True)
class IngestReport:
    """What one source brought, or one batch of it.

    `skipped` counts lines by reason (`tombstone`, `undeclared test_db.x`, …). `discovered`: tables ingested undeclared
    for the first time. `resolved`: dead letters that are none any
    more; `dead_letters` are then those that are left. `first_dead_letter`: why and where the first of them is one.
    """

    source: str
    tables: tuple[TableReport, ...] = ()
    batches: int = 0
    events: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    dead_letter_table: TableName | None = None
    resolved: int = 0
    discovered: tuple[TableName, ...] = ()
    seconds: float = 0.0
    first_dead_letter: str | None = None

    @property
    def failed(self) -> bool:
        """Whether a table could not be written; its events are ingested again by the next run."""
        return any(table.error for table in self.tables)


def by_table(reports: Iterable[TableReport]) -> dict[TableName, TableReport]:
    """One report for each table, in the order in which they first appear."""
    total: dict[TableName, TableReport] = {}
    for report in reports:
        total[report.table] = total[report.table].plus(report) if report.table in total else report
    return total
