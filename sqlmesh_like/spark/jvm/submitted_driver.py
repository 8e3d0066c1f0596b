"""A driver that `spark-submit` has started within a cluster. Owns what YARN expects of it."""

from __future__ import annotations

from typing import Any

from pyspark import SparkConf, SparkContext


def register_driver() -> None:
    """Make a context of Spark, and end it, where this process has made none and runs in YARN's cluster mode.

    YARN counts an application without one as failed ("User did not initialize spark context!"), so a command that
    needed no Spark would be an error to whoever has submitted it.
    Source: `ApplicationMaster.runDriver` of Spark 3.5.
    """
    if SparkContext._gateway is not None:  # a session was there
        return
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    properties = jvm.java.lang.System
    if properties.getProperty("spark.submit.deployMode") == "cluster":
        # Nothing is computed: executors that are asked for now would arrive after the end.
        settings = {"spark.dynamicAllocation.enabled": "false", "spark.executor.instances": "0"}
        SparkContext(conf=SparkConf().setAll(list(settings.items()))).stop()
