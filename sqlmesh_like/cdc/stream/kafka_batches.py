"""The next batch of a source's streaming query over Kafka, planned and recorded without Spark, as Spark would.

Spark records where a query begins (`sources/0/0`), then the offsets after each batch. Owns these ends; `query_records`
has the record. Layout and rules: `KafkaMicroBatchStream` and `KafkaOffsetReaderAdmin` of Spark 3.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError
from sqlmesh_like.cdc.sources.event_log import ExtentOf
from sqlmesh_like.cdc.sources.kafka_log import LINE_EXPRESSIONS, KafkaLog, offsets_of
from sqlmesh_like.cdc.sources.query_log import PartitionOffsets, QueryLog, by_partition
from sqlmesh_like.cdc.stream.kafka_messages import KafkaMessages, Partition, ranges_between
from sqlmesh_like.cdc.stream.local_lines import MOST_LINES
from sqlmesh_like.cdc.stream.log_files import MOST_BYTES
from sqlmesh_like.cdc.stream.query_records import VERSION, QueryRecords, compact_json
from sqlmesh_like.cdc.stream.scala_order import offsets_by_topic
from sqlmesh_like.fault_points import fault_point

_BEGIN = "sources/0/0"
_LATEST, _EARLIEST = -1, -2


@dataclass(frozen=True)
class KafkaBatch:
    """A batch: its number, the offsets before and after it, and those of them that have messages.

    `is_planned`: its record is there from an earlier call.
    """

    number: int
    start: PartitionOffsets
    end: PartitionOffsets
    ranges: Mapping[Partition, tuple[int, int]]
    is_planned: bool


@dataclass(frozen=True)
class KafkaBatches:
    """The batches of a query over topics."""

    records: QueryRecords
    log: KafkaLog
    messages: KafkaMessages

    @cached_property
    def watermarks(self) -> Mapping[Partition, tuple[int, int]]:
        """The first offset of each partition and the one after the last: asked once, so that the call ends."""
        return self.messages.watermarks()

    def next(self) -> KafkaBatch | None:
        """The batch that was begun and not completed, else one of all that no batch had; None: there is nothing new.

        A query's first batch may be empty, as Spark's is. Raises NotProvenError where only Spark can go on.
        """
        last, newest = self.records.completed, self.records.planned
        start = self._end_of(last) if last >= 0 else self._begin()
        is_planned = newest > last
        end = self._end_of(newest) if is_planned else {key: high for key, (_, high) in self.watermarks.items()}
        ranges = ranges_between(start, end, self.watermarks)
        events = sum(stop - first for first, stop in ranges.values())
        if events > MOST_LINES:
            raise NotProvenError(f"more than {MOST_LINES:,} events")
        if not is_planned and events > (self.log.max_events or MOST_LINES):
            raise NotProvenError(f"more than the {self.log.max_events:,} events of a batch")
        if last >= 0 and not is_planned and end == start:
            return None
        return KafkaBatch(last + 1, start, end, ranges, is_planned)

    def lines(self, batch: KafkaBatch) -> tuple[RowFrame, ExtentOf]:
        """The lines of a batch, and what gives their part of the log. Raises NotProvenError."""
        return self.messages.read(batch.ranges, MOST_BYTES).selectExpr(*LINE_EXPRESSIONS), offsets_of

    def begin(self, batch: KafkaBatch) -> None:
        """Record what the batch covers, unless that is recorded. Raises FileExistsError where another call did it."""
        if not batch.number and not self.records.place.exists(_BEGIN):
            # Spark 2.1 expected a byte in front.
            self.records.create(_BEGIN, [f"\0{VERSION}", compact_json(offsets_by_topic(batch.start))])
            fault_point("ingest.listed")
        if not batch.is_planned:
            self.records.plan(batch.number, offsets_by_topic(batch.end))
            fault_point("ingest.planned")

    def _end_of(self, number: int) -> PartitionOffsets:
        end = self.records.end_of(number)
        if not isinstance(end, dict) or not all(isinstance(each, dict) for each in end.values()):
            raise NotProvenError(f"the record of batch {number} has another form")
        return by_partition(end)

    def _begin(self) -> PartitionOffsets:
        """Where the query begins: as recorded, else as the source declares."""
        if self.records.place.exists(_BEGIN):
            try:
                return QueryLog(self.records.checkpoint, "", {}).first_offsets
            except (OSError, ValueError):
                raise NotProvenError("the record of the first offsets cannot be read") from None
        if self.records.planned >= 0:
            raise NotProvenError("a checkpoint without some of its records")
        return first_offsets(self.log.settings.get("starting_offsets") or "earliest", self.watermarks)


def first_offsets(declared: object, watermarks: Mapping[Partition, tuple[int, int]]) -> PartitionOffsets:
    """The offsets that `starting_offsets` means. Raises NotProvenError where Spark may know better.

    >>> first_offsets("latest", {("t", 0): (3, 9)}), first_offsets({"t": {0: -2}}, {("t", 0): (3, 9)})
    ({('t', 0): 9}, {('t', 0): 3})
    """
    if declared in ("earliest", "latest"):
        return {key: ends[declared == "latest"] for key, ends in watermarks.items()}
    try:
        given = by_partition(json.loads(json.dumps(declared)) if isinstance(declared, dict) else {})
    except ValueError:
        given = {}
    if given.keys() != watermarks.keys() or min(given.values()) < _EARLIEST:
        raise NotProvenError("starting_offsets do not name the partitions that are there")
    known = {key: {_EARLIEST: low, _LATEST: high} for key, (low, high) in watermarks.items()}
    return {key: known[key].get(offset, offset) for key, offset in given.items()}
