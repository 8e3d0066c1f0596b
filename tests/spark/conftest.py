"""Fixtures of the tests on Spark and Hudi."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.lake import Lake


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """A project of this test alone, with no models and no tables yet."""
    return Lake(spark, tmp_path)
