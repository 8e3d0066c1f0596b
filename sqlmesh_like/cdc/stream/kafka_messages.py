"""Messages of a few offsets in Kafka, fetched without Spark by librdkafka. Owns its consumer.

Partitions are assigned, and offsets given: no group is joined, and nothing is committed to the brokers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.in_process.row_frame import RowFrame
from sqlmesh_like.cdc.in_process.values import NotProvenError, Value
from sqlmesh_like.cdc.sources.kafka_log import MESSAGE_COLUMNS, KafkaLog
from sqlmesh_like.cdc.stream.kafka_settings import librdkafka_settings

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message

    from sqlmesh_like.cdc.sources.query_log import PartitionOffsets

Partition = tuple[str, int]
_SECONDS = 10.0
"""After which an answer of the brokers is no longer waited for."""
_REQUESTS = 8
"""How many offsets are asked for at once."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CERTAIN_PATTERN = re.compile(
    r"(?:[A-Za-z0-9_.^$|*+?)-]|\((?!\?)|\\[.dw-]|\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.])+-?\])*"
)
"""Regular expressions that match the same names of topics in Java and in Python."""


def why_not_here() -> str | None:
    """Why this process cannot read Kafka; None: it can."""
    if find_spec("confluent_kafka") is None:
        return "the package confluent-kafka is not installed: pip install 'sqlmesh_like[kafka]'"
    return None


@contextmanager
def open_messages(log: KafkaLog) -> Iterator[KafkaMessages]:
    """The messages of a log while the context is open. Raises NotProvenError where the client has an error."""
    from confluent_kafka import Consumer, KafkaException

    settings = librdkafka_settings(log.settings)
    own = {
        "group.id": "sml",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",  # as in Java, where it is the default
        "fetch.wait.max.ms": 20,
        "queued.max.messages.kbytes": 32_768,
        "log_level": 0,
        "error_cb": lambda _: None,  # what fails for good is raised by the call
    }
    try:
        consumer = Consumer({**own, **settings})
        try:
            yield KafkaMessages(log, consumer)
        finally:
            consumer.close()
    except KafkaException as error:
        raise _client_error(error.args[0]) from None


@dataclass(frozen=True)
class KafkaMessages:
    """The topics of a log, read by a consumer. Methods raise NotProvenError or KafkaException."""

    log: KafkaLog
    consumer: Consumer

    def watermarks(self) -> Mapping[Partition, tuple[int, int]]:
        """For each partition of the log's topics, the first offset that is there and the one after the last."""
        partitions = self._partitions()
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return dict(zip(partitions, pool.map(self._watermarks_of, partitions), strict=True))

    def _watermarks_of(self, partition: Partition) -> tuple[int, int]:
        from confluent_kafka import TopicPartition

        ends = self.consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_SECONDS)
        if ends is None:
            raise NotProvenError("the brokers of Kafka do not say which offsets they have")
        return ends

    def _partitions(self) -> list[Partition]:
        result: list[Partition] = []
        for name in self._topics():
            topic = self.consumer.list_topics(name, timeout=_SECONDS).topics[name]
            errors = [each.error for each in (topic, *topic.partitions.values()) if each.error is not None]
            if errors or not topic.partitions:
                raise NotProvenError(f"the topic {name} cannot be read now")
            result += [(name, partition) for partition in sorted(topic.partitions)]
        return result

    def _topics(self) -> Collection[str]:
        pattern = self.log.settings.get("topic_pattern")
        names = self.log.topics if pattern is None else self._matching(str(pattern))
        if not names or any(name.startswith("__") or not name for name in names):
            raise NotProvenError("no topics, or those of Kafka itself")
        return sorted(set(names))

    def _matching(self, pattern: str) -> list[str]:
        if not _CERTAIN_PATTERN.fullmatch(pattern):
            raise NotProvenError(f"the pattern {pattern}, which Java may read otherwise")
        try:
            search = re.compile(pattern, re.ASCII).search
        except re.error:
            raise NotProvenError(f"the pattern {pattern}, which is not one of Python") from None
        return [name for name in self.consumer.list_topics(timeout=_SECONDS).topics if search(name)]

    def read(self, ranges: Mapping[Partition, tuple[int, int]], most_bytes: int) -> RowFrame:
        """The messages from each partition's first offset to the one before its end, which is not empty.

        Columns: `MESSAGE_COLUMNS`; grain: message, in order of partitions and offsets. There may be fewer than offsets:
        some were compacted away, and some are markers of transactions.
        """
        from confluent_kafka import KafkaError, TopicPartition

        missing = dict(ranges)
        rows: list[tuple[Value, ...]] = []
        size = 0
        self.consumer.assign([TopicPartition(*partition, first) for partition, (first, _) in ranges.items()])
        while missing:
            message = self.consumer.poll(_SECONDS)
            if message is None:
                raise NotProvenError("the brokers of Kafka do not send all messages")
            error = message.error()
            if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                continue  # no group is needed
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise _client_error(error)
            partition = (str(message.topic()), int(message.partition() or 0))
            if partition not in missing:
                continue
            offset, end = int(message.offset() or 0), missing[partition][1]
            if error is not None and offset < end:
                raise NotProvenError("the brokers of Kafka no longer have all messages")
            if error is None and offset < end:
                rows.append(_row(message))
                size += sum(len(each) for each in rows[-1][-2:] if each is not None)
                if size > most_bytes:
                    raise NotProvenError(f"more than {most_bytes // 1024**2} MB of events")
            if error is not None or offset >= end - 1:
                del missing[partition]
        self.consumer.unassign()
        return RowFrame(MESSAGE_COLUMNS, sorted(rows, key=itemgetter(0, 1, 2)))


def _row(message: Message) -> tuple[Value, ...]:
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    kind, millis = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE or millis < 0:
        raise NotProvenError("a message of Kafka without its time")
    try:
        moment = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        raise NotProvenError("a message of Kafka from beyond the year 9999") from None
    return message.topic(), message.partition(), message.offset(), moment, message.key(), message.value()


def _client_error(error: KafkaError) -> NotProvenError:
    return NotProvenError(f"the client of Kafka failed here: {error.name()}")


def ranges_between(
    start: PartitionOffsets, end: PartitionOffsets, watermarks: Mapping[Partition, tuple[int, int]]
) -> dict[Partition, tuple[int, int]]:
    """The offsets of a batch by partition: from the first to the one before the second. A new partition begins at 0.

    Raises NotProvenError where the brokers lack some of them, or topics: Spark says which, and what to do.

    >>> ranges_between({("t", 0): 5}, {("t", 0): 7, ("t", 1): 2, ("t", 2): 0}, {("t", n): (0, 9) for n in range(3)})
    {('t', 0): (5, 7), ('t', 1): (0, 2)}
    """
    if gone := (start.keys() - end.keys()) | (end.keys() - watermarks.keys()):
        raise NotProvenError("{}/{} is no longer there".format(*min(gone)))
    result: dict[Partition, tuple[int, int]] = {}
    for partition, stop in end.items():
        low, high = watermarks[partition]
        first = start.get(partition, 0)
        is_lost = low > 0 if partition not in start else low > first and stop > first
        if is_lost or not first <= stop <= high:
            raise NotProvenError(f"{partition[0]}/{partition[1]} no longer has all offsets from {first}")
        if first < stop:
            result[partition] = (first, stop)
    return result
