"""Paths of an ingestion's state in a warehouse. Owns paths and names; reads and writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Source, SourceTable, Target


@dataclass(frozen=True)
class SourcePaths:
    """The paths of one source in one warehouse."""

    target: Target
    source: Source

    @property
    def checkpoint(self) -> str:
        """Spark's record of what was read; without it everything is read again, with the same final state."""
        return f"{self.target.warehouse}/_sml/checkpoints/{self.source.name}"

    @property
    def behind(self) -> str:
        """Records of tables that failed and have to catch up."""
        return f"{self.target.warehouse}/_sml/behind/{self.source.name}"

    @property
    def last_commits(self) -> str:
        """The record of the newest commit that the source made to each table."""
        return f"{self.target.warehouse}/_sml/last_commits/{self.source.name}"

    @property
    def dead_letters(self) -> TableName:
        return TableName(self.source.schema, f"{self.source.name}__dead_letters")

    @property
    def dead_letters_uri(self) -> str:
        return f"{self.target.warehouse}/{self.dead_letters.schema}/{self.dead_letters.identifier}"

    def table_uri(self, table: SourceTable) -> str:
        return table.location or f"{self.target.warehouse}/{table.table.schema}/{table.table.identifier}"

    @property
    def discovered(self) -> str:
        """The record of tables that were ingested without being declared."""
        return f"{self.target.warehouse}/_sml/discovered/{self.source.name}"

    @property
    def skipped(self) -> str:
        """The record of source tables whose events were skipped."""
        return f"{self.target.warehouse}/_sml/skipped/{self.source.name}"

    def compared(self, table: SourceTable) -> str:
        """The record of the table's comparisons with its database."""
        return f"{self.target.warehouse}/_sml/compared/{table.table.schema}/{table.table.identifier}"

    def truncates(self, table: SourceTable) -> str:
        """The record of when the source emptied a table."""
        return f"{self.target.warehouse}/_sml/truncates/{table.table.schema}/{table.table.identifier}"

    def tombstones_uri(self, table: SourceTable) -> str:
        return f"{self.target.warehouse}/_sml/tombstones/{table.table.schema}/{table.table.identifier}"
