"""Python's workers, which Spark starts in the project's folder, import nothing of it. Only Spark starts them."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def test_a_worker_has_a_safe_path(spark: SparkSession) -> None:
    """Without it `python -m pyspark.daemon` imports a planted `numbers.py` before anything else."""
    (is_safe,) = spark.sparkContext.parallelize([1], 1).map(lambda _: sys.flags.safe_path).collect()
    assert is_safe
