"""What an ingestion did, as frozen values. Owns the counts; printing them is the command's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlmesh_like.names import TableName


@dataclass(frozen=True)
class TableReport:
    """What one table took in over all batches of a run. `late` events were older than what the table has."""

    table: TableName
    upserts: int = 0
    deletes: int = 0
    late: int = 0
    seconds: float = 0.0
    error: str | None = None
    replayed: int = 0

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
        )


@dataclass(frozen=True)
class IngestReport:
    """What one source brought. `skipped` counts lines by reason (`tombstone`, `undeclared test_db.x`, …)."""

    source: str
    tables: tuple[TableReport, ...] = ()
    batches: int = 0
    events: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    dead_letters: int = 0
    dead_letter_table: TableName | None = None

    @property
    def failed(self) -> bool:
        """Whether a table could not be written; its events are taken in again by the next run."""
        return any(table.error for table in self.tables)
