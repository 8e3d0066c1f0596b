"""Logs in Kafka, one message per record. Owns the options of reading them and how a record's position is written.

Offsets are recorded in the checkpoint and with each table's commit, never in a consumer group. Events of one key must
be in one partition, as every tool writes them: only there do offsets say which came first.
Options: https://spark.apache.org/docs/3.5.7/structured-streaming-kafka-integration.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlmesh_like.cdc.frames import Frame, frame_query
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS, ExtentOf
from sqlmesh_like.cdc.sources.offset_range import OffsetRange, Offsets
from sqlmesh_like.errors import IngestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MESSAGE_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")
"""The columns of a message that a line is made of."""
_LINE = {
    "value": "cast(value as string)",
    "file": "concat(topic, '/', partition)",
    "line": "offset",
    "position": "concat(topic, '|', lpad(partition, 6, '0'), '|', lpad(offset, 20, '0'))",
    "logged_at": "unix_millis(timestamp)",
    # Tools name a topic after its table: prefix.database.table.
    "log_database": "if(contains(topic, '.'), substring_index(substring_index(topic, '.', -2), '.', 1), null)",
    "log_table": "substring_index(topic, '.', -1)",
    "log_schema": "cast(null as string)",
    "log_key": "cast(key as string)",
}
LINE_EXPRESSIONS = tuple(f"{_LINE[name]} as {name}" for name in LINE_COLUMNS)
"""Spark SQL of a line (`LINE_COLUMNS`) over a message (`MESSAGE_COLUMNS`)."""

_MAX_TASKS = 8
"""A small batch is not worth the cores of a large cluster."""


@dataclass(frozen=True)
class KafkaLog:
    """The topics of a source. `settings` are its `kafka:` block, which may hold passwords."""

    settings: Mapping[str, object] = field(repr=False)
    max_events: int | None = None

    def stream(self, spark: SparkSession, start: str | None) -> DataFrame | None:
        options = {**self._options(spark), **self._topics()}
        declared = self.settings.get("starting_offsets") or "earliest"
        options["startingOffsets"] = start or (declared if isinstance(declared, str) else json.dumps(declared))
        if self.max_events:
            options["maxOffsetsPerTrigger"] = str(self.max_events)
        return spark.readStream.format("kafka").options(**options).load()

    def read(self, spark: SparkSession, extent: OffsetRange) -> DataFrame:
        assert isinstance(extent, Offsets)
        first: dict[str, dict[str, int]] = {}
        end: dict[str, dict[str, int]] = {}
        for topic, partition, start, stop in extent.ranges:
            first.setdefault(topic, {})[str(partition)] = start
            end.setdefault(topic, {})[str(partition)] = stop
        assigned = {topic: sorted(int(partition) for partition in partitions) for topic, partitions in first.items()}
        options = {
            **self._options(spark),
            "assign": json.dumps(assigned),
            "startingOffsets": json.dumps(first),
            "endingOffsets": json.dumps(end),
        }
        return spark.read.format("kafka").options(**options).load()

    def earliest(self, spark: SparkSession, partitions: list[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        """The first offset that the brokers still have, by partition; without partitions of topics that are gone.

        Raises IngestError where the brokers do not answer.
        """
        from py4j.protocol import Py4JJavaError

        jvm = spark._jvm
        assert jvm is not None
        options = {name: value for name, value in self._options(spark).items() if name.startswith("kafka.")}
        settings = jvm.java.util.Properties()
        for name, value in options.items():
            settings.setProperty(name.removeprefix("kafka."), value)
        for name in ("key", "value"):
            settings.setProperty(f"{name}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer")
        try:
            consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
            try:
                topics = set(consumer.listTopics())
                wanted = [
                    jvm.org.apache.kafka.common.TopicPartition(topic, partition)
                    for topic, partition in partitions
                    if topic in topics
                ]
                offsets = consumer.beginningOffsets(wanted)
                return {(each.topic(), each.partition()): int(offsets[each]) for each in wanted}
            finally:
                consumer.close()
        except Py4JJavaError as error:
            raise IngestError(f"the brokers do not say what they have: {error.java_exception}") from error

    @contextmanager
    def lines(self, batch: DataFrame) -> Iterator[tuple[DataFrame, ExtentOf]]:
        yield batch.selectExpr(*LINE_EXPRESSIONS), offsets_of

    def _options(self, spark: SparkSession) -> dict[str, str]:
        given = self.settings.get("options")
        options = {str(name): str(value) for name, value in given.items()} if isinstance(given, dict) else {}
        # A dotted name that is not one of Spark's options is the client's, with its prefix `kafka.` left out.
        options = {name if _is_spark(name) else f"kafka.{name}": value for name, value in options.items()}
        # Spark reads a partition in one task, and topics often have only one.
        tasks = min(spark.sparkContext.defaultParallelism, _MAX_TASKS)
        return {
            "minPartitions": str(tasks),
            **options,
            "kafka.bootstrap.servers": str(self.settings["bootstrap_servers"]),
        }

    def _topics(self) -> dict[str, str]:
        pattern = self.settings.get("topic_pattern")
        if pattern is not None:
            return {"subscribePattern": str(pattern)}
        return {"subscribe": ",".join(self.topics)}

    @property
    def topics(self) -> list[str]:
        """The topics that are declared by name."""
        topics = self.settings.get("topics")
        return [str(topic) for topic in topics] if isinstance(topics, list) else str(topics).split(",")


def offsets_of(lines: Frame | None) -> Offsets:
    """The part of the log that these lines are (`file`, `line`)."""
    assert lines is not None
    query = "select file, min(line) as first, max(line) + 1 as stop from {lines} group by file"
    rows = frame_query(query, lines=lines).collect()
    places = (file.rpartition("/") for file, _, _ in rows)
    ranges = ((topic, int(part), first, end) for (topic, _, part), (_, first, end) in zip(places, rows, strict=True))
    return Offsets(tuple(sorted(ranges)))


def _is_spark(name: str) -> bool:
    """
    >>> _is_spark("kafka.security.protocol"), _is_spark("minPartitions"), _is_spark("security.protocol")
    (True, True, False)
    """
    return name.startswith("kafka.") or "." not in name
