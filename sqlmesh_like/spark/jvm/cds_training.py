"""The training session of a class archive: run as a module with the Java options that write the archive.

Owns exercising what every call uses: a Hudi write, an upsert, a read, an aggregate; a batch of a stream of files, JSON
read by a schema, rows staged as Parquet. `cds_archive` starts it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.project.nodes import Target
from sqlmesh_like.spark.jvm.session import start_session

_OPTIONS = {
    "hoodie.table.name": "training",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.metadata.enable": "false",
}


def train(java_options: Sequence[str]) -> None:
    """Run a small session to its end, so that Java writes the archive on exit, and wait for that."""
    with tempfile.TemporaryDirectory(prefix="sml-training-") as folder:
        options = {"spark.driver.extraJavaOptions": " ".join(java_options)}
        target = Target("training", "training", "spark", warehouse=folder, master="local[2]", spark=options)
        session = start_session(target, "training", log_file=Path(folder) / "spark.log", use_archive=False)
        _touch(session, f"{folder}/table")
        _touch_stream(session, Path(folder, "events"))
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


def _touch_stream(session: SparkSession, folder: Path) -> None:
    """Run one batch as ingestion does: lines with their files, an envelope, rows of a few types, one row per key."""
    folder.mkdir()
    line = '{"op": "c", "after": {"id": 1, "name": "a", "at": "2024-01-01T00:00:00Z", "amount": "1.50"}}\n'
    (folder / "1.json").write_text(line * 3)
    row = "struct<id: bigint, name: string, at: timestamp, amount: decimal(10,2)>"

    def batch(lines: DataFrame, _: int) -> None:
        events = lines.selectExpr("value", "file", "from_json(value, 'op string, after string') e")
        events = events.persist()
        events.groupBy("e.op").count().collect()
        images = events.selectExpr("file", "e.op", "sha2(value, 256) as key", f"from_json(e.after, '{row}') as row")
        images = images.where("row.id is not null and op rlike '[cu]'")
        rows = images.groupBy("key").agg(F.max_by("row", "file").alias("row"), F.collect_set("op").alias("ops"))
        rows = rows.selectExpr("key", "row.*", "explode(ops) as op", "date_format(row.at, 'yyyyMM') as month")
        rows.join(rows.select("key").distinct(), "key", "left_semi").write.parquet(str(folder / "rows"))
        session.read.parquet(str(folder / "rows")).join(F.broadcast(images.select("key")), "key", "left").collect()
        events.unpersist()

    stream = session.readStream.schema("value string").option("maxFilesPerTrigger", 1).text(str(folder))
    stream = stream.selectExpr("value", "_metadata.file_path as file")
    writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    train(sys.argv[1:])
