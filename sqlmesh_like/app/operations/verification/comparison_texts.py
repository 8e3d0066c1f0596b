"""What people are told of a table that differs from its database, or could not be compared. Owns the words."""

from __future__ import annotations

from sqlmesh_like.cdc.sources.database.comparison.record import ComparisonRecord
from sqlmesh_like.project.nodes import SourceTable


def difference_text(table: SourceTable, record: ComparisonRecord) -> str | None:
    """How a table differs, and what to do; None where it is not known to differ."""
    finding = record.finding
    if finding is None or not record.differs:
        return None
    part = "" if finding.share == 1 else f" --share {finding.share * 100:g} --seed {finding.seed}"
    call = f"sml verify -s source:{table.source_name}.{table.name}{part}"
    return (
        f"{finding.different} rows differ from the database, of {finding.rows} that were compared; to see them: {call};"
        f" to read them again, without a watch: {call} --repair"
    )


def failure_text(record: ComparisonRecord) -> str | None:
    """Why the last comparison of a table was not possible; None where it was.

    >>> failure_text(ComparisonRecord(failed_at=1.0, error="the database is away\\n  try later"))
    'it could not be compared with the database: the database is away'
    """
    if record.error is None:
        return None
    return f"it could not be compared with the database: {record.error.splitlines()[0]}"
