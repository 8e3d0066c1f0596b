"""Events from Kafka into 1, 10 and 50 tables, compared with a minimal job for one table.

The bare job is Structured Streaming, one `from_json` with a fixed schema and one Hudi upsert with our write options: no
deletes, no order, no dead letters, no schema evolution. Both read the same events, in one batch, in the same session.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.result import Options, SuiteResult, Timings, Unavailable
from bench.spark import seconds_of, spark_session
from sqlmesh_like.errors import MachineError
from sqlmesh_like.project.nodes import SourceTable
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from tests.services.kafka import broker
from tests.spark.ingest_lake import Lake, table

COUNTS = (1, 10, 50)
COLUMNS = {
    "id": "bigint",
    "name": "string",
    "city": "string",
    "amount": "decimal(12,2)",
    "quantity": "int",
    "score": "double",
    "is_new": "boolean",
    "create_time": "timestamp",
}
_EVENT = """concat('{"before":null,"after":{"id":', id, ',"name":"customer ', id % 9973, '","city":"city ', id % 97,
  '","amount":', (id * 7919) % 100003, '.25,"quantity":', id % 13, ',"score":', id % 1009, '.5,"is_new":',
  if(id % 2 = 0, 'true', 'false'), ',"create_time":"2024-0', 1 + id % 9, '-01T10:20:30Z"},
  "source":{"db":"db","table":"t', id % {tables}, '"},"op":"c","ts_ms":1}')"""


def run(options: Options) -> SuiteResult:
    """Measure one event for each order of the scale."""
    counts = COUNTS[:2] if options.is_quick else COUNTS
    try:
        timings = _measured(options.folder, options, counts)
    except MachineError as error:
        raise Unavailable(f"a broker of Kafka cannot be started here: {error}") from error
    return SuiteResult(
        "kafka",
        f"{options.orders:,} events from Kafka",
        "bare streaming job that fills one table ÷ sml ingest of as many events",
        timings.figures(),
    )


def _measured(root: Path, options: Options, counts: Sequence[int]) -> Timings:
    events, timings = options.orders, Timings()
    with broker(root) as kafka, spark_session(root, options.memory, with_kafka=True) as spark:
        for count in counts:
            _send(spark, kafka, f"small_{count}", 1000, count)
            _send(spark, kafka, f"all_{count}", events, count)
        # Once to warm up the JVM.
        _bare(spark, root / "warm", kafka, "small_1", 1000)
        _ours(spark, root / "warm_ours", kafka, "small", 1000, 1)
        for number in range(options.repeat):
            other = _bare(spark, root / f"bare_{number}", kafka, "all_1", events)
            for count in counts:
                ours = _ours(spark, root / f"ours_{count}_{number}", kafka, "all", events, count)
                name = f"{count} table{'s' if count > 1 else ''}"
                timings.add("from Kafka", name, other=other, ours=ours, events=events)
    return timings


def _send(spark: SparkSession, kafka: str, topic: str, events: int, count: int) -> None:
    rows = spark.range(events).selectExpr(
        "cast(id as string) as key", f"{_EVENT.replace('{tables}', str(count))} as value"
    )
    rows.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", kafka).option("topic", topic).save()


def _bare(spark: SparkSession, root: Path, kafka: str, topic: str, events: int) -> float:
    layout = HudiTable(str(root / "table"), "bare", ("id",))

    def batch(records: DataFrame, _: int) -> None:
        parsed = records.selectExpr(f"from_json(cast(value as string), '{_struct()}').after as r").select("r.*")
        hudi_table.write(
            parsed.withColumn("create_time", parsed["create_time"].cast("timestamp")), layout, "upsert", {}
        )

    stream = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka).option("subscribe", topic)
    query = stream.option("startingOffsets", "earliest").load().writeStream.foreachBatch(batch)
    query = query.option("checkpointLocation", str(root / "checkpoint")).trigger(availableNow=True)
    seconds = seconds_of(lambda: query.start().awaitTermination())
    _expect(spark, [layout.uri], events)
    return seconds


def _struct() -> str:
    fields = ", ".join(f"{name}: {'string' if kind == 'timestamp' else kind}" for name, kind in COLUMNS.items())
    return f"after struct<{fields}>"


def _ours(spark: SparkSession, root: Path, kafka: str, topic: str, events: int, count: int) -> float:
    root.mkdir(parents=True)
    declared: tuple[SourceTable, ...] = tuple(table(f"t{number}", columns=COLUMNS) for number in range(count))
    source = {"bootstrap_servers": kafka, "topics": [f"{topic}_{count}"]}
    lake = Lake(spark, root, declared, {"files": None, "kafka": source})

    def work() -> None:
        report = lake.run()
        assert not report.failed and not report.dead_letters, report

    seconds = seconds_of(work)
    _expect(spark, [lake.uri(f"t{number}") for number in range(count)], events)
    return seconds


def _expect(spark: SparkSession, uris: Sequence[str], events: int) -> None:
    rows = sum(spark.read.format("hudi").load(uri).count() for uri in uris)
    assert rows == events, (rows, events)
