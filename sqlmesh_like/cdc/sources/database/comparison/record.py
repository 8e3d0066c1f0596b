"""What comparisons of a table with its database have shown. Owns the record in the warehouse, a file for each table.

`sml verify` and `sml watch` write it, and health is told from it. It has no values of rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sqlmesh_like.cdc.sources.notes import read_notes, write_notes
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.project.nodes import SourceTable

if TYPE_CHECKING:
    from sqlmesh_like.cdc.sources.database.comparison.differences import TableComparison
    from sqlmesh_like.cdc.sources.database.comparison.table_comparison import ComparisonRequest

_FILE = "comparison.json"


@dataclass(frozen=True)
class Finding:
    """A comparison of a table that was possible. `at`: seconds since 1970; `rows`: of the database, that were compared.

    `different`: rows that differ; `undecided`: rows of which the log had changes that the table had not read. `share`
    and `seed`: which of the table's chunks it was about; all of them with 1.
    """

    at: float
    status: Literal["pass", "warn", "fail"]
    rows: int
    different: int
    undecided: int
    share: float
    seed: int

    def is_about(self, share: float, seed: int) -> bool:
        """Whether a comparison of this share compares all that this one has."""
        return share == 1 or (share, seed) == (self.share, self.seed)


@dataclass(frozen=True)
class ComparisonRecord:
    """The newest finding about a table, and the newest comparison if it was not possible: when, and why."""

    finding: Finding | None = None
    failed_at: float | None = None
    error: str | None = None

    @property
    def differs(self) -> bool:
        return self.finding is not None and self.finding.status == "fail"

    @property
    def compared_at(self) -> float | None:
        """When it was last tried to compare the table, in seconds since 1970."""
        return self.failed_at or (self.finding.at if self.finding else None)


def comparison_record(place: SourcePaths, table: SourceTable) -> ComparisonRecord:
    """What is known of a table. Raises NewerVersionError."""
    notes = folder(place.compared(table))
    if not notes.exists(_FILE):
        return ComparisonRecord()
    read: dict[str, Any] = read_notes(notes, _FILE)
    finding = read["finding"]
    return ComparisonRecord(None if finding is None else Finding(**finding), read["failed_at"], read["error"])


def note_comparison(
    place: SourcePaths, result: TableComparison, request: ComparisonRequest, at: float
) -> ComparisonRecord:
    """Record a result of this moment (seconds since 1970), and return what is known of the table now."""
    record = with_result(comparison_record(place, result.table), result, request, at)
    write_notes(folder(place.compared(result.table)), _FILE, asdict(record))
    return record


def with_result(
    record: ComparisonRecord, result: TableComparison, request: ComparisonRequest, at: float
) -> ComparisonRecord:
    """The record with a result. That a table differs is known until what differed was compared again."""
    status = result.status
    if status == "error":
        return replace(record, failed_at=at, error=result.error)
    share, seed = (request.share, request.seed) if result.sampled else (1.0, 0)
    new = Finding(at, status, result.rows, result.different + result.left, result.unread, share, seed)
    is_other_part = record.finding is not None and record.differs and not record.finding.is_about(share, seed)
    return ComparisonRecord(record.finding if is_other_part and status != "fail" else new)
