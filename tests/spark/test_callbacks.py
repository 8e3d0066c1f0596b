"""Connections through which Spark calls Python: closed while nobody calls, opened again by who does."""

from __future__ import annotations

import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.spark.jvm.session import close_idle_callbacks


def test_a_query_calls_again_after_its_connection_was_closed(spark: SparkSession, tmp_path: Path) -> None:
    folder, seen = tmp_path / "lines", list[list[str]]()
    folder.mkdir()

    def batch(lines: DataFrame, number: int) -> None:
        seen.append([row["value"] for row in lines.collect()])

    lines = spark.readStream.text(str(folder)).writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    close_idle_callbacks(spark)
    before = threading.active_count()
    query = lines.foreachBatch(batch).start()
    try:
        for number in range(3):
            (folder / f"{number}.txt").write_text(f"line {number}\n")
            query.processAllAvailable()
            close_idle_callbacks(spark)
    finally:
        query.stop()
    assert seen == [["line 0"], ["line 1"], ["line 2"]]
    assert threading.active_count() <= before + 1
