"""The next batch of files of a source's streaming query, planned and recorded without Spark, as Spark would.

Spark lists the files of a batch (`sources/0/<log id>`) before it records the batch. Owns that list and which files are
new; `query_records` has the record. Layout: `FileStreamSource` and `CompactibleFileStreamLog` of Spark 3.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import ExtentOf, LogLines
from sqlmesh_like.cdc.sources.file_log import FileLog
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.query_log import ListedFile, QueryLog
from sqlmesh_like.cdc.stream.local_lines import local_lines
from sqlmesh_like.cdc.stream.local_rows import local_row_files
from sqlmesh_like.cdc.stream.log_files import listed_files
from sqlmesh_like.cdc.stream.query_records import VERSION, QueryRecords, compact_json
from sqlmesh_like.fault_points import fault_point

_COMPACTED_EVERY = 10


@dataclass(frozen=True)
class QueryBatch:
    """A batch: its number, the id of its listing, and its files (modification time in ms, URI).

    `is_listed`, `is_planned`: the record of its files, or that of the batch as well, is there from an earlier call.
    """

    number: int
    log_id: int
    files: tuple[tuple[int, str], ...]
    is_listed: bool = False
    is_planned: bool = False


@dataclass(frozen=True)
class QueryBatches:
    """The batches of a query over a log of files."""

    records: QueryRecords
    log: FileLog | ParquetLog

    @cached_property
    def listed(self) -> list[tuple[int, str]]:
        """The files that are there: listed once, so that the call ends where files never cease to arrive."""
        return listed_files(self.log.glob)

    def next(self) -> QueryBatch | None:
        """The batch that was begun and not completed, else one of listed files that no batch had; None: there is none.

        Raises NotProvenError where only Spark can go on.
        """
        listed, listings = self.listed, self._listings
        last, newest = self.records.completed, self.records.planned
        end = self._log_id(last) if last >= 0 else -1
        newest_listing = max((each.log_id for each in listings), default=-1)
        if newest_listing < end:
            raise NotProvenError("a checkpoint without some of its records")
        if newest == last + 1 or newest_listing > end:
            log_id = self._log_id(newest) if newest > last else newest_listing
            files = tuple((each.modified, each.uri) for each in listings if end < each.log_id <= log_id)
            return QueryBatch(last + 1, log_id, files, is_listed=True, is_planned=newest > last)
        seen = {each.uri for each in listings}
        files = tuple(file for file in sorted(listed) if file[1] not in seen)[: self.log.max_files]
        return QueryBatch(last + 1, end + 1, files) if files else None

    def lines(self, batch: QueryBatch) -> tuple[LogLines, ExtentOf]:
        """The lines of a batch, and what gives their part of the log. Raises NotProvenError, and IngestError."""
        if isinstance(self.log, ParquetLog):
            rows, extent = local_row_files(self.log, batch.files)
            return rows, lambda _: extent
        lines, extent = local_lines(self.log, batch.files)
        return lines, lambda _: extent

    def begin(self, batch: QueryBatch) -> None:
        """Record what the batch covers, unless that is recorded. Raises FileExistsError where another call did it."""
        if not batch.is_listed:
            self._list(batch)
            fault_point("ingest.listed")
        if not batch.is_planned:
            self.records.plan(batch.number, {"logOffset": batch.log_id})
            fault_point("ingest.planned")

    def _list(self, batch: QueryBatch) -> None:
        is_compacted = (batch.log_id + 1) % self._interval() == 0
        listed = [ListedFile(batch.log_id, modified, uri) for modified, uri in batch.files]
        lines = [
            compact_json({"path": each.uri, "timestamp": each.modified, "batchId": each.log_id})
            for each in (*(self._listings if is_compacted else ()), *listed)
        ]
        name = f"{batch.log_id}.compact" if is_compacted else str(batch.log_id)
        self.records.create(f"sources/0/{name}", [VERSION, *lines])

    @property
    def _listings(self) -> tuple[ListedFile, ...]:
        return QueryLog(self.records.checkpoint, "", {}).files

    def _interval(self) -> int:
        """After how many listings Spark expects one that has all, which follows from those that are there."""
        names = self.records.place.names("sources/0")
        compacted = sorted(int(name.removesuffix(".compact")) for name in names if name.endswith(".compact"))
        if len(compacted) > 1:
            return compacted[-1] - compacted[-2]
        if not compacted:
            return _COMPACTED_EVERY
        size = compacted[0] + 1
        divisors = (number for number in range(_COMPACTED_EVERY, size // 2 + 1) if size % number == 0)
        return next(divisors, size) if size // 2 > _COMPACTED_EVERY else size

    def _log_id(self, number: int) -> int:
        """The id of the last listing in a batch."""
        try:
            return int(self.records.end_of(number)["logOffset"])
        except (ValueError, LookupError, TypeError):
            raise NotProvenError(f"the record of batch {number} cannot be read") from None
