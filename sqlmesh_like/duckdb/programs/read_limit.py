"""How much of its tables a program may read in this process. Owns the count.

An estimate is not a limit: whether a step reads a table is often known only once the steps before it have rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import pyarrow as pa

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.local_files import LocalTable
from sqlmesh_like.duckdb.programs.executor_rows import ExecutorRows
from sqlmesh_like.plan.cluster.job_price import JobsDone
from sqlmesh_like.run.ports import SparkWork, waited_seconds
from sqlmesh_like.run.remote_reader import KeyedRows, RemoteQuery, RemoteReader, RemoteRows

MOST_ROWS = 2_000_000
"""Rows that executors return at most, for one choice of keys or one step."""


@dataclass(frozen=True)
class TableRead:
    """A relation that is read whole: its name in a program, and the table as of a frontier."""

    relation: str
    table: LocalTable
    frontier: str

    @property
    def bytes(self) -> int:
        return _bytes_of(self.table, self.frontier)


@dataclass
class ReadLimit:
    """The limit of one run of a program, in bytes of files, each table counted whole and once; None: there is none.

    `reader`: who reads tables that would exceed it. `spark`: what it has done for that; the program has waited
    `seconds` for it, of which `starting_seconds` for the start of its session.
    """

    most_bytes: int | None = None
    reader: RemoteReader | None = None
    spark: SparkWork | None = None
    seconds: float = 0.0
    starting_seconds: float = 0.0
    _counted: set[str] = field(default_factory=set)
    _bytes: int = 0

    def is_exceeded_by(self, reads: Iterable[TableRead]) -> bool:
        """Whether executors have to read these tables, each named once, as they are too large to be read here."""
        if self.most_bytes is None or self.reader is None:
            return False
        added = sum(read.bytes for read in reads if read.relation not in self._counted)
        return self._bytes + added > self.most_bytes

    def count_table(self, read: TableRead) -> None:
        """Count a table. Raises Unproven above the limit."""
        if self.most_bytes is not None:
            self.count(read.relation, read.bytes)

    def count(self, relation: str, bytes_: int) -> None:
        """Count what a relation reads. Raises Unproven above the limit."""
        if self.most_bytes is None or relation in self._counted:
            return
        self._counted.add(relation)
        self._bytes += bytes_
        if self._bytes > self.most_bytes:
            raise Unproven(f"{self._bytes:,} bytes are read; on the driver, {self.most_bytes:,} (`driver_max_bytes`)")

    def executors(self, read: TableRead) -> ExecutorRows | None:
        """Those who look rows up in a table, because to read it here would exceed the limit; None: it may be read."""
        if self.most_bytes is None or not read.table.timeline.is_cow or not self.is_exceeded_by([read]):
            return None
        rows = sum(each.rows or 0 for each in read.table.timeline.sizes(read.frontier).values())
        most = min(MOST_ROWS, self.most_bytes * rows // read.bytes) if rows else MOST_ROWS
        return ExecutorRows(self._look_up, read.table, read.frontier, most)

    def run_query(self, wanted: RemoteQuery) -> RemoteRows:
        assert self.reader is not None
        return self._noted(partial(self.reader.run_query, wanted))

    def _look_up(self, wanted: KeyedRows) -> pa.Table | None:
        assert self.reader is not None
        return self._noted(partial(self.reader.look_up, wanted)).rows

    @property
    def done(self) -> JobsDone | None:
        """The jobs of executors so far; None: there were none, or it is not known how many."""
        if self.spark is None:
            return None
        seconds = self.seconds - self.starting_seconds
        return JobsDone(self.spark.jobs, seconds, self.spark.bytes_read + self.spark.bytes_shuffled)

    def _noted(self, ask: Callable[[], RemoteRows]) -> RemoteRows:
        began, waited = perf_counter(), waited_seconds()
        result = ask()
        self.seconds += perf_counter() - began
        self.starting_seconds += waited_seconds() - waited
        if result.spark is not None:
            self.spark = result.spark if self.spark is None else self.spark + result.spark
        return result


def _bytes_of(table: LocalTable, frontier: str) -> int:
    return sum(size.bytes for size in table.timeline.sizes(frontier).values())
