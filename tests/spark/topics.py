"""Waiting for what a real source sends to a topic."""

from __future__ import annotations

import time

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrameReader, SparkSession

_WAIT_SECONDS = 600


def wait_for(spark: SparkSession, kafka: str, topic: str, text: str) -> None:
    """Wait until a message of the topic holds this text: all that its source sent before has arrived then."""
    records = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka).option("subscribePattern", topic)
    limit = time.monotonic() + _WAIT_SECONDS
    while not _holds(records, text):
        assert time.monotonic() < limit, f"{topic} has no {text}"
        time.sleep(0.5)


def _holds(records: DataFrameReader, text: str) -> bool:
    try:
        return not records.load().where(f"contains(cast(value as string), '{text}')").isEmpty()
    except Py4JJavaError as error:
        if "different topic partitions" not in str(error):
            raise
        return False  # the topic came between Spark's questions for the first and the last messages


def wait_for_snapshot(spark: SparkSession, kafka: str, topic: str) -> None:
    """Wait until Debezium's first reading of all tables has arrived: a row written while it goes on may be part of it.

    Such a row is then no sign that the tables read after it have arrived.
    """
    wait_for(spark, kafka, topic, '"snapshot":"last"')
