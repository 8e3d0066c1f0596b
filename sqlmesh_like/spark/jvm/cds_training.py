"""The session that a class archive is trained in: run as a module with the Java options that write the archive.

Owns touching what every run touches (a Hudi write, an upsert, a read, an aggregate); `cds_archive` starts it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.session import start_session

_OPTIONS = {
    "hoodie.table.name": "training",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
}


def train(java_options: Sequence[str]) -> None:
    """Run a small session to its end, so that Java writes its archive, and wait for that."""
    with tempfile.TemporaryDirectory(prefix="sml-training-") as folder:
        options = {"spark.driver.extraJavaOptions": " ".join(java_options)}
        target = Target("training", "training", "spark", warehouse=folder, master="local[2]", spark=options)
        session = start_session(target, "training", log_file=Path(folder) / "spark.log", use_archive=False)
        _touch(session, f"{folder}/table")
        process = session.sparkContext._gateway.proc  # type: ignore[union-attr]
        session.stop()
        process.stdin.close()
        process.wait()


def _touch(session: SparkSession, path: str) -> None:
    rows = session.sql(
        "select id, cast(id % 2 as string) part, cast(id as decimal(10,2)) amount, timestamp_micros(id) at"
        " from range(4) where id >= 0"
    )
    for operation in ("upsert", "upsert", "insert_overwrite"):
        writer = rows.write.format("hudi").options(**_OPTIONS)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(path)
    table = session.read.format("hudi").load(path)
    table.groupBy("part").agg({"amount": "sum", "at": "max"}).join(table, "part").collect()


if __name__ == "__main__":
    train(sys.argv[1:])
