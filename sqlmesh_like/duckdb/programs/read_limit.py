"""How much of its tables a program may read in this process. Owns the count.

An estimate is not a limit: whether a step reads a table is often known only once the steps before it have rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.programs.executor_rows import ExecutorRows
from sqlmesh_like.run.ports import KeyedRows, RowLookup, SparkWork

_MOST_ROWS = 2_000_000
"""Rows that executors return at most, for one choice of keys, and no more than the limit's share of a table."""


@dataclass
class ReadLimit:
    """The limit of one run of a program, in bytes of files, each table counted whole and once; None: there is none.

    `lookup`: who looks rows up in a table that would exceed it. `spark`: what it has done for that.
    """

    most_bytes: int | None = None
    lookup: RowLookup | None = None
    spark: SparkWork | None = None
    _counted: set[str] = field(default_factory=set)
    _bytes: int = 0

    def count_table(self, relation: str, table: LocalTable, frontier: str) -> None:
        """Count a table as of a frontier, which the relation reads. Raises Unproven above the limit."""
        if self.most_bytes is not None:
            self.count(relation, _bytes_of(table, frontier))

    def executors(self, relation: str, table: LocalTable, frontier: str) -> ExecutorRows | None:
        """Those who look rows up in a table, because to read it here would exceed the limit; None: it may be read."""
        if self.most_bytes is None or self.lookup is None or relation in self._counted or not table.timeline.is_cow:
            return None
        size = _bytes_of(table, frontier)
        if self._bytes + size <= self.most_bytes:
            return None
        rows = sum(each.rows or 0 for each in table.timeline.sizes(frontier).values())
        most = min(_MOST_ROWS, self.most_bytes * rows // size) if rows else _MOST_ROWS
        return ExecutorRows(self._look_up, table, frontier, most)

    def _look_up(self, wanted: KeyedRows) -> pa.Table | None:
        assert self.lookup is not None
        result = self.lookup.look_up(wanted)
        if result.spark is not None:
            self.spark = result.spark if self.spark is None else self.spark + result.spark
        return result.rows

    def count(self, relation: str, bytes_: int) -> None:
        """Count what a relation reads. Raises Unproven above the limit."""
        if self.most_bytes is None or relation in self._counted:
            return
        self._counted.add(relation)
        self._bytes += bytes_
        if self._bytes > self.most_bytes:
            raise Unproven(f"{self._bytes:,} bytes are read; on the driver, {self.most_bytes:,} (`driver_max_bytes`)")


def _bytes_of(table: LocalTable, frontier: str) -> int:
    return sum(size.bytes for size in table.timeline.sizes(frontier).values())
