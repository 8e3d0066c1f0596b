"""What DuckDB reads of a table's changes, and exports of it, is what Spark gives: rows, names and types."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from pyspark.sql import SparkSession
from sqlglot import parse_one

from sqlmesh_like.duckdb.local_changes import local_changes, local_export
from sqlmesh_like.duckdb.local_query import local_rows
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.names import TableName, visible
from sqlmesh_like.run.ports import Export, Rows
from sqlmesh_like.spark.change_feed.change_feed import change_feed, label_changes
from sqlmesh_like.spark.export import export_rows
from sqlmesh_like.spark.writer.upsert import frame_schema
from tests.spark.lake import Lake
from tests.spark.tables.test_mor_rows import COLUMNS, row


def comparable(rows: Rows) -> tuple[object, Counter[str]]:
    return rows.schema, Counter(repr(tuple(each)) for each in rows.rows)


def all_of(export: Export) -> tuple[object, Counter[str]]:
    def rows() -> list[dict[str, Any]]:
        return [each for batch in export.batches() for each in batch.to_pylist()]

    assert rows() == rows() or Counter(map(repr, rows())) == Counter(map(repr, rows())), "it can be read again"
    return (export.whole, [(f.name, str(f.type)) for f in export.schema]), Counter(map(repr, rows()))


@pytest.mark.release
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_changes_and_exports_are_those_of_spark(
    kind: Literal["cow", "mor"], spark: SparkSession, tmp_path: Path
) -> None:
    dice, lake = random.Random(kind), Lake(spark, tmp_path)
    table = lake.source("t", COLUMNS, partition="ym", table_type=kind)
    frontiers = [table.write(*(row(dice, id) for id in range(8)), operation="bulk_insert")]
    for _ in range(3):
        ids = dice.sample(range(11), 5)
        frontiers.append(table.upsert(*(row(dice, id) for id in ids[2:]), delete=[row(dice, id) for id in ids[:2]]))
    state = LakeHistory().state(table.uri)
    feed = change_feed(spark, table.timeline)
    for start in frontiers[:-1]:
        frame = label_changes(feed.changes(start, frontiers[-1]))
        expected = Rows(frame_schema(frame), tuple(tuple(each) for each in frame.collect()))
        rows = local_changes(state, start, -1)
        assert rows is not None and comparable(rows) == comparable(expected), start
        few = local_changes(state, start, 2)
        assert few is not None and len(few.rows) == 2
    for since in (None, frontiers[0], frontiers[2]):
        with local_export(state, since) as ours, export_rows(spark, state, since, f"{tmp_path}/staging") as theirs:
            assert ours is not None and all_of(ours) == all_of(theirs), since


def test_a_table_of_several_schemas_is_read_at_each_frontier(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    narrow = lake.source("t", "id int, v int, ym string", partition="ym")
    first = narrow.write((1, 1, "a"), (2, 2, "b"), operation="bulk_insert")
    wide = lake.source("t", "id int, v bigint, ym string, more string", partition="ym")
    wide.upsert((1, 2**40, "a", "x"))
    name = TableName("ods", "t")
    whole = parse_one("select * from ods.t", dialect="spark")
    for as_of, expected in ((first, [(1, 1, "a"), (2, 2, "b")]), (None, [(1, 2**40, "a", "x"), (2, 2, "b", None)])):
        state = LakeHistory().state(narrow.uri)
        state = state if as_of is None else state_at(state, as_of)
        rows = local_rows(whole, {name: state}, visible(state.schema or ()), -1, datetime.now(UTC))
        assert rows is not None and sorted(rows.rows) == expected


def test_tables_with_nested_columns_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    table = Lake(spark, tmp_path).source("t", "id int, tags array<string>")
    first = table.write((1, ["a"]), operation="bulk_insert")
    table.upsert((1, ["b"]))
    state = LakeHistory().state(table.uri)
    assert local_changes(state, first, -1) is None
    with local_export(state, None) as export:
        assert export is None
