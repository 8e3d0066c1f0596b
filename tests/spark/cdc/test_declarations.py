"""Declarations and the events they take: shards, folders, tables that are declared after their events came."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.sources.skipped_tables import skipped_tables
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from tests.levels import parametrize
from tests.spark.ingest_lake import Lake, table


def insert(database: str, name: str, **row: object) -> str:
    return json.dumps({"op": "c", "before": None, "after": row, "source": {"db": database, "table": name}, "ts_ms": 1})


def update(database: str, name: str, before: object, after: object) -> str:
    source = {"db": database, "table": name}
    return json.dumps({"op": "u", "before": before, "after": after, "source": source, "ts_ms": 1})


@pytest.mark.release
def test_events_that_no_declaration_took_are_ingested_once_one_does(spark: SparkSession, tmp_path: Path) -> None:
    wrong = table("user", database="user_db", table=r"user_\d+", origin="shard", primary_key=("shard", "id"))
    lake = Lake(spark, tmp_path, (wrong, table("other")))
    report = lake.ingest(
        insert("user_db_0", "user_0", id=1, v="a"),
        insert("user_db_1", "user_0", id=1, v="b"),
        insert("user_db_bak", "user_0", id=1, v="no"),
        insert("db", "other", id=1, v="x"),
    )
    assert [each.name for each in report.unmatched] == ["user"]
    assert lake.ingest(update("user_db_0", "user_0", {"id": 1, "v": "a"}, {"id": 1, "v": "a2"})).unmatched
    # One shard first: the other one's events come to a table that has events of the same batches.
    lake.tables = (_database(wrong, "user_db_0"), table("other"))
    assert not lake.run().unmatched
    assert lake.rows("user", "shard", "id", "v") == [("user_db_0.user_0", 1, "a2")]
    lake.tables = (_database(wrong, r"user_db_\d+"), table("other"))
    lake.run()
    both = [("user_db_0.user_0", 1, "a2"), ("user_db_1.user_0", 1, "b")]
    assert lake.rows("user", "shard", "id", "v") == both
    assert lake.commits("other") == 1
    lake.ingest(insert("user_db_0", "user_1", id=9, v="c"), insert("user_db_bak", "user_0", id=2, v="no"))
    assert lake.rows("user", "shard", "id", "v") == [both[0], ("user_db_0.user_1", 9, "c"), both[1]]
    _, target, source = lake.declared()
    assert {each.source[0] for each in skipped_tables(SourcePaths(target, source))} == {"user_db_bak"}


def _database(declared: object, pattern: str) -> object:
    return replace(declared, ingest=replace(declared.ingest, database=pattern))  # type: ignore[type-var, attr-defined]


@parametrize("kind", suite=["parquet"], release=["jsonl"])
def test_dms_files_in_folders_of_dates_belong_to_their_table(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    def land(folder: str, number: int, **row: object) -> None:
        path = tmp_path / "landing 层" / folder / f"{number}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "parquet":
            pq.write_table(pa.table({name: [value] for name, value in row.items()}), path)
        else:
            path.write_text(json.dumps(row) + "\n", encoding="utf-8")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    glob = f"landing 层/用户库/*/*/*/*/*.{kind}"
    lake = Lake(spark, tmp_path, (), {"format": "dms", "files": glob})
    land("用户库/用户/2024/01/01", 1, Op="I", id=1, v="a")
    land("用户库/用户/2024/01/02", 2, Op="U", id=1, v="b")
    land("用户库/订单/2024/01/02", 3, Op="I", id=7, v="no")
    lake.tables = (table("user", database="用户库", table="客户"),)
    assert lake.run().unmatched
    lake.tables = (table("user", database="用户库", table="用户"),)
    lake.run()
    assert lake.rows("user", "id", "v") == [(1, "b")]
    land("用户库/用户/2024/01/03", 4, Op="D", id=1, v="b")
    lake.run()
    assert lake.rows("user", "id", "v") == []
