"""How much of its tables a program may read in this process. Owns the count.

An estimate is not a limit: whether a step reads a table is often known only once the steps before it have rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import LocalTable


@dataclass
class ReadLimit:
    """The limit of one run of a program, in bytes of files, each table counted whole and once; None: there is none."""

    most_bytes: int | None = None
    _counted: set[str] = field(default_factory=set)
    _bytes: int = 0

    def count_table(self, relation: str, table: LocalTable, frontier: str) -> None:
        """Count a table as of a frontier, which the relation reads. Raises Unproven above the limit."""
        if self.most_bytes is not None:
            self.count(relation, sum(size.bytes for size in table.timeline.sizes(frontier).values()))

    def count(self, relation: str, bytes_: int) -> None:
        """Count what a relation reads. Raises Unproven above the limit."""
        if self.most_bytes is None or relation in self._counted:
            return
        self._counted.add(relation)
        self._bytes += bytes_
        if self._bytes > self.most_bytes:
            raise Unproven(f"{self._bytes:,} bytes are read; on the driver, {self.most_bytes:,} (`driver_max_bytes`)")
