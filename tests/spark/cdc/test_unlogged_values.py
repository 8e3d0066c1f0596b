"""Values that a log leaves out, while rows come to keys that others had: by Spark, and after a replay of letters."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.stream.replay import replay
from tests.spark.ingest_lake import Lake, table
from tests.unlogged_log import FORMATS, Row, SourceTable, as_tuple, changes_for

pytestmark = pytest.mark.release

TYPES = {"id": "int", "who": "int", "v": "int", "text": "string"}


def _stored(spark: SparkSession, lake: Lake) -> set[tuple[int, int, int, str]]:
    rows = spark.read.format("hudi").load(lake.uri()).collect()
    shown: list[Row] = [row.asDict() for row in rows]
    return {as_tuple(row) for row in shown if not row.get("_sml_deleted")}


@pytest.mark.parametrize(("number", "form"), [*enumerate(sorted(FORMATS))])
def test_each_row_is_one_that_the_source_had(spark: SparkSession, tmp_path: Path, number: int, form: str) -> None:
    how, dice = FORMATS[form], random.Random(f"{form} {number}")
    deletes = ("hard", "retention")[number % 2]
    settings = {"format": how.name}
    lake = Lake(spark, tmp_path, (table(columns=TYPES, deletes=deletes, updates=how.updates),), settings)
    lake.delta_engine = "spark"
    source, letters, may_be_lost = SourceTable(dice), 0, False
    for _ in range(3):
        changes = changes_for(how, source, dice.randrange(6, 16))
        may_be_lost |= any(change.is_unknown for change in changes)
        letters += lake.ingest(*(json.dumps(how.event(change)) for change in changes)).dead_letters
        rows = _stored(spark, lake)
        assert rows <= source.history, rows - source.history
        assert may_be_lost or not letters
        if not letters and deletes == "hard":
            assert rows == set(map(as_tuple, source.rows.values()))
    if letters:
        replay(spark, *lake.declared())
        rows = _stored(spark, lake)
        assert rows <= source.history, rows - source.history
