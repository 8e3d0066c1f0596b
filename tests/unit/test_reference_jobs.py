"""No option of the three described pipelines is missing from the page that maps them."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference_jobs.md").read_text(encoding="utf-8")
CAPTURE = """
    --checkpointDir --checkpointInterval --brokerList --sinkTopic --host --username --pwd --dbList --tbList --parallel
    --position --serverId"""
INTO_HUDI = """
    --env --brokerList --sourceTopic --consumeGroup --syncHive --startPos --tableInfoJson --trigger --checkpointDir
    --hudiEventBasePath --tableType --morCompact --inlineMax --syncJDBCUrl --syncJDBCUsername --partitionNum
    --hudiWriteOperation --concurrent --syncMode --syncMetastore database table recordKey precombineKey
    partitionTimeColumn hudiPartitionField hoodie.datasource.write.payload.class _hoodie_is_deleted --replication-factor
    --partitions -yjm -ytm -ys classloader.check-leaked-classloader spark.dynamicAllocation.enabled spark.serializer
    spark.sql.hive.convertMetastoreParquet state.backend state.checkpoint-storage state.checkpoints.dir
    execution.checkpointing.interval state.checkpoints.num-retained .mode .externalized-checkpoint-retention
    state.backend.incremental .max-concurrent-checkpoints rest.flamegraph.enabled hive.metastore.client.factory.class
    sql-client.execution.result-mode index.bootstrap.enabled read.streaming.enabled read.start-commit
    read.streaming.check-interval changelog.enabled write.precombine.field write.operation hive_sync.enable .use_jdbc
    table.dynamic-table-options.enabled"""
SQL_SERVER = """
    rds_cdc_enable_db sp_cdc_enable_table sp_cdc_help_change_data_capture bootstrap.servers plugin.path
    connector.class database.hostname .port .user .password .server.id .server.name .dbname
    database.history.kafka.bootstrap.servers .topic decimal.handling.mode include.schema.changes value.converter
    connector=kafka format=debezium-json topic scan.startup.mode properties.group.id EXACTLY_ONCE parallelism.default
    connector=hudi table.type write.tasks hoodie.parquet.compression.codec LAST_VALUE"""
DELTA_STREAMER = """
    --table-type --source-ordering-field --props --source-class --target-base-path --target-table
    --transformer-class --payload-class --schemaprovider-class --enable-hive-sync --checkpoint --continuous
    --min-sync-interval-seconds deltastreamer.transformer.sql parquet.small.file.limit parquet.max.file.size
    shuffle.parallelism binlog_format binlog_checksum retention dataFormat timestampColumnName
    parquetTimestampInMillisecond commits"""


@pytest.mark.parametrize(
    ("chapter", "options"),
    [
        ("Many tables", CAPTURE),
        ("Many tables", INTO_HUDI),
        ("SQL Server", SQL_SERVER),
        ("Files of DMS", DELTA_STREAMER),
    ],
    ids=["capture", "into Hudi", "SQL Server", "DeltaStreamer"],
)
def test_each_option_has_its_row(chapter: str, options: str) -> None:
    (text,) = [part for part in PAGE.split("\n## ") if part.startswith(chapter)]
    message = " ".join(line.split("|")[1] for line in text.replace("\\|", "/").splitlines() if line.startswith("|"))
    missing = [option for option in options.split() if option not in message]
    assert not missing, f"docs/reference_jobs.md does not name {missing}"
