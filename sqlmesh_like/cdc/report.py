"""Results of an ingestion as frozen values. Owns the counts; the command prints them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import SourceTable

UNDECLARED = "undeclared "
"""Begins the reason of skipped lines whose table is not declared; its name follows."""


@dataclass(frozen=True)
class TableReport:
    """What one table ingested over all batches of a run.

    `late`: keys whose events were older than the table's version. `changes`: of its columns, in words. `events`: lines
    for this table. `lag`: seconds between logging and ingesting the newest of them. `error`: why it is behind; it
    catches up by itself. `dead_letters`: rows of events that could not be ingested. `retained`: deletions that the
    table does not follow, see `deletes: retention`.
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
    dead_letters: int = 0
    retained: int = 0

    @property
    def has_only_dead_letters(self) -> bool:
        """Whether none of the table's events could be ingested."""
        done = self.upserts or self.deletes or self.late or self.replayed or self.retained
        return bool(self.dead_letters) and not done and not self.error

    def plus(self, other: TableReport) -> TableReport:
        """Add a later report of the same table; `error` is that of the later one."""
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
            self.dead_letters + other.dead_letters,
            self.retained + other.retained,
        )


@dataclass(frozen=True)
class IngestReport:
    """What was ingested from one source, in one batch or a whole run.

    `skipped` counts lines by reason (`tombstone`, `undeclared test_db.x`, …). `discovered`: undeclared tables ingested
    for the first time. `resolved`: dead letters that a replay ingested; `dead_letters` is then how many are left.
    `first_dead_letter`: location and reason of the first of them. `unmatched`: declared tables that have never had an
    event, where events of undeclared tables were skipped.
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
    unmatched: tuple[SourceTable, ...] = ()

    def plus(self, later: IngestReport) -> IngestReport:
        """Add a later report of the same source. Tables stay in the order in which they first appear."""
        return replace(
            later,
            tables=tuple(by_table((*self.tables, *later.tables)).values()),
            batches=self.batches + later.batches,
            events=self.events + later.events,
            skipped=Counter(self.skipped) + Counter(later.skipped),
            dead_letters=self.dead_letters + later.dead_letters,
            resolved=self.resolved + later.resolved,
            discovered=(*self.discovered, *later.discovered),
            seconds=self.seconds + later.seconds,
            first_dead_letter=self.first_dead_letter or later.first_dead_letter,
            unmatched=(),
        )

    @property
    def failed(self) -> bool:
        """Whether any table could not be written; the next run ingests its events again."""
        return any(table.error for table in self.tables)

    @property
    def has_only_dead_letters(self) -> bool:
        """Whether events became dead letters and no other event was ingested; never for a replay of dead letters."""
        is_done = any(table.events and not table.has_only_dead_letters for table in self.tables)
        return self.first_dead_letter is not None and not is_done

    @property
    def undeclared(self) -> Mapping[str, int]:
        """The skipped lines of undeclared tables, by the tables' names."""
        named = (
            (why.removeprefix(UNDECLARED), count) for why, count in self.skipped.items() if why.startswith(UNDECLARED)
        )
        return dict(named)


def by_table(reports: Iterable[TableReport]) -> dict[TableName, TableReport]:
    """One report for each table, in the order in which they first appear."""
    total: dict[TableName, TableReport] = {}
    for report in reports:
        total[report.table] = total[report.table].plus(report) if report.table in total else report
    return total
