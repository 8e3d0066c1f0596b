"""Merge-on-read ODS tables: events come in, models follow them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlglot import parse_one

from sqlmesh_like.duckdb.local_query import local_rows
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import TableName
from tests.spark.ingest_lake import BY_MONTH, event, table
from tests.spark.ingest_lake import Lake as IngestLake
from tests.spark.lake import Lake

JAN, FEB = 1_704_067_200_000, 1_706_745_600_000
FIELDS = (
    {"field": "id", "type": "int64"},
    {"field": "v", "type": "int32"},
    {"field": "at", "type": "int64"},
    {"field": "create_time", "type": "int64", "name": "io.debezium.time.Timestamp"},
)


def row(id: int, v: int, at: int, month: int = JAN) -> dict[str, int]:
    return {"id": id, "v": v, "at": at, "create_time": month}


def change(op: str, after: object = None, before: object = None) -> str:
    return event(op, after, before, fields=FIELDS)


@pytest.mark.checklist(30)
def test_a_merge_on_read_table_takes_events_in_and_models_follow(spark: SparkSession, tmp_path: Path) -> None:
    declared = table(table_type="mor", order_by=("at",), partition_by=BY_MONTH)
    ods = IngestLake(spark, tmp_path, (declared,))
    lake = Lake(spark, tmp_path)
    lake.declare("t")
    lake.model("kept", "select id, v from @t where v > 0")
    lake.model("sums", "select year_month, sum(v) as total, count(*) as n from @t group by year_month")
    ods.ingest(*[change("c", row(id, id * 10, 5)) for id in (1, 2, 3)])
    assert not Timeline(ods.uri()).is_cow
    lake.run_well()
    assert lake.rows("sums") == [("202401", 60, 3)]
    # An update, a late one that loses, a move of partition, a delete and a new row.
    ods.ingest(
        change("u", row(1, 11, 6), row(1, 10, 5)),
        change("u", row(2, 99, 4), row(2, 20, 5)),
        change("u", row(3, 30, 7, FEB), row(3, 30, 5)),
        change("c", row(4, 40, 1)),
    )
    assert lake.run_well() == {"kept": "row_based", "sums": "aggregate_merge"}
    lake.assert_maintained()
    assert lake.rows("sums") == [("202401", 71, 3), ("202402", 30, 1)]
    ods.ingest(
        change("d", None, row(4, 40, 2)),
        change("d", None, row(3, 30, 8, FEB)),
        change("u", row(1, -1, 9), row(1, 11, 6)),
    )
    lake.compaction(ods.uri(), "schedule")
    ods.ingest(change("u", row(3, 31, 7, FEB), row(3, 30, 5)))  # older than its delete
    assert lake.run_well() == {"kept": "row_based", "sums": "aggregate_merge"}
    lake.assert_maintained()
    assert lake.rows("kept") == [(2, 20)]
    lake.compaction(ods.uri(), "run")
    assert lake.run_well() == {"kept": "no_op", "sums": "no_op"}
    assert ods.rows("t", "id", "v") == [(1, -1), (2, 20)]


@pytest.mark.release
def test_a_merge_on_read_table_is_read_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    named = [table("t", partition_by=BY_MONTH, table_type="mor"), table("ordered", order_by=("at",), table_type="mor")]
    ods = IngestLake(spark, tmp_path, tuple(named))

    def changes(op: str, after: object, before: object = None) -> list[str]:
        return [event(op, after, before, fields=FIELDS, table=each.name) for each in named]

    ods.ingest(*changes("c", row(1, 10, 5)), *changes("c", row(2, 20, 5)), *changes("c", row(3, 30, 5, FEB)))
    # An update that moves the row, of which the event does not say from where; a delete; a new row.
    ods.ingest(*changes("u", row(1, 11, 6, FEB)), *changes("d", None, row(2, 20, 5)), *changes("c", row(4, 40, 6)))
    for each in named:
        state = LakeHistory().state(ods.uri(each.name))
        query = parse_one(f"select id, v from ods.{each.name} where v > 0 order by id", dialect="spark")
        tables = {TableName("ods", each.name): state}
        rows = local_rows(query, tables, None, -1, datetime(2024, 1, 1, tzinfo=UTC))
        assert rows is not None
        assert list(rows.rows) == ods.rows(each.name, "id", "v") == [(1, 11), (3, 30), (4, 40)]
