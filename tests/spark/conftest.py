"""Fixtures of the tests on Spark and Hudi."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.services.kafka import broker, broker_jars
from tests.services.wanted import need
from tests.spark.lake import Lake


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """A project of this test alone, with no models and no tables yet."""
    return Lake(spark, tmp_path)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker, one for the suite: tests keep apart by their topics."""
    need(broker_jars)
    with broker(tmp_path_factory.mktemp("kafka")) as address:
        yield address
