"""Values that a log leaves out, while rows come to keys that others had: by Spark, and after a replay of letters."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.stream.replay import replay
from sqlmesh_like.project.nodes import PartitionBy
from tests.spark.ingest_lake import Lake, table
from tests.unlogged_log import FORMATS, Change, Row, SourceTable, as_tuple, changes_for

pytestmark = pytest.mark.release

TYPES = {"id": "int", "who": "int", "v": "int", "text": "string"}


def _stored(spark: SparkSession, lake: Lake) -> set[tuple[int, int, int, str]]:
    rows = spark.read.format("hudi").load(lake.uri()).collect()
    shown: list[Row] = [row.asDict() for row in rows]
    return {as_tuple(row) for row in shown if not row.get("_sml_deleted")}


@pytest.mark.parametrize(("number", "form"), [*enumerate(sorted(FORMATS))])
def test_each_row_is_one_that_the_source_had(spark: SparkSession, tmp_path: Path, number: int, form: str) -> None:
    how, dice = FORMATS[form], random.Random(f"{form} {number}")
    deletes = ("hard", "retention", "soft")[number % 3]
    settings = {"format": how.name}
    lake = Lake(spark, tmp_path, (table(columns=TYPES, deletes=deletes, updates=how.updates),), settings)
    lake.delta_engine = "spark"
    source, letters, may_be_lost = SourceTable(dice), 0, deletes == "retention" and not how.inserts
    for _ in range(3):
        changes = changes_for(how, source, dice.randrange(6, 16))
        may_be_lost |= any(change.is_unknown for change in changes)
        letters += lake.ingest(*(json.dumps(how.event(change)) for change in changes)).dead_letters
        rows = _stored(spark, lake)
        assert rows <= source.history, rows - source.history
        assert may_be_lost or not letters
        if not letters and deletes != "retention":
            assert rows == set(map(as_tuple, source.rows.values()))
    if letters:
        replay(spark, *lake.declared())
        rows = _stored(spark, lake)
        assert rows <= source.history, rows - source.history


FIRST, LATER = ({"id": 1, "who": who, "v": v, "text": text} for who, v, text in ((1, 0, "ü"), (2, 7, "later")))
OTHER = {**FIRST, "id": 2, "who": 5}


@pytest.mark.parametrize("form", sorted(FORMATS))
def test_a_delete_of_which_the_log_has_the_key_alone_keeps_the_row(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    how, gone = FORMATS[form], Change(FIRST, None, before="key")
    own: dict[str, Any] = {"deletes": "soft", "updates": how.updates, "partition_by": PartitionBy("who", None, "part")}
    lake = Lake(spark, tmp_path, (table(columns=TYPES, **own),), {"format": how.name}, delta_engine="spark")

    def ingest(*changes: Change) -> list[tuple[object, ...]]:
        assert lake.ingest(*(json.dumps(how.event(change)) for change in changes)).dead_letters == 0
        return lake.rows("t", *TYPES, "_sml_deleted", "part")

    other = (*OTHER.values(), False, "5")
    assert ingest(Change(None, FIRST), Change(None, OTHER), gone) == [(*FIRST.values(), True, "1"), other]
    assert ingest(Change(None, LATER), gone, gone) == [(*LATER.values(), True, "2"), other]
    assert ingest(gone) == [(*LATER.values(), True, "2"), other]


def test_an_event_that_the_table_has_keeps_the_value_that_it_was_given(spark: SparkSession, tmp_path: Path) -> None:
    """The log is read again from its start, which no longer has the event that had the value."""
    how = FORMATS["debezium"]
    lake = Lake(spark, tmp_path, (table(columns=TYPES, order_by=("v",)),), delta_engine="spark")
    moved = {**FIRST, "v": 7}
    for change in (Change(None, FIRST), Change(FIRST, moved, unlogged=True, before="none")):
        lake.ingest(json.dumps(how.event(change)))
    (lake.landing / "0000.jsonl").unlink()
    assert lake.run("earliest").dead_letters == 0
    assert lake.rows("t", *TYPES) == [tuple(moved.values())]


def test_deletes_with_the_key_alone_of_a_parquet_file_and_a_replay(spark: SparkSession, tmp_path: Path) -> None:
    """Of a row whose last update is a dead letter that came before its delete: it keeps what the table has."""
    lake = Lake(spark, tmp_path, (table(columns={"id": "int", "day": "int"}, deletes="soft"),))
    lake.settings = {"format": "dms", "files": "landing/db/t/*.parquet"}
    folder = lake.landing / "db" / "t"
    folder.mkdir(parents=True)
    for number, rows in enumerate(
        (
            {"Op": ["I", "I", "I"], "id": [1, 2, 3], "day": ["1", "2", "3"]},
            {"Op": ["D", "U", "U"], "id": [1, 2, 3], "day": [None, "5", "x"]},
            {"Op": ["D", "D", "I"], "id": [3, 2, 2], "day": [None, None, "6"]},
        )
    ):
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table(rows), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        lake.run()
    shown = ("id", "day", "_sml_deleted")
    assert lake.rows("t", *shown) == [(1, 1, True), (2, 6, False), (3, 3, True)]
    lake.tables = (table(columns={"id": "int", "day": "string"}, deletes="soft"),)
    assert replay(spark, *lake.declared()).resolved == 1
    assert lake.rows("t", *shown) == [(1, "1", True), (2, "6", False), (3, "3", True)]
