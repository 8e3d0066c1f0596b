"""Decoding of whatever comes: each message is a row, a skip or a dead letter, and nothing is raised."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.schema import limits
from tests.levels import IS_DEEP
from tests.security.hostile_messages import PAYLOADS, mixed
from tests.spark.ingest_lake import Lake, event, table

FORMATS = ("debezium", "flink_cdc", "canal", "maxwell", "dms")
MESSAGES = 800 if IS_DEEP else 250
EXAMPLES = 5 if IS_DEEP else 1
"""Of each format: 20,000 messages in all, or 1,250."""


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count()


@pytest.mark.release
@pytest.mark.parametrize("form", FORMATS)
def test_each_message_is_a_row_a_skip_or_a_dead_letter(
    form: str, spark: SparkSession, tmp_path: Path, numbers: Iterator[int]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32), st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True))
    def every(start: int, keys: list[str]) -> None:
        lines = mixed(random.Random(start), MESSAGES, ("id", "name", *keys))
        columns = {"id": "bigint", "name": "string"}
        # The default stops a table at a type that it cannot hold, so that somebody decides.
        source = {"format": form, "on_schema_change": "lenient"}
        lake = Lake(spark, tmp_path / str(next(numbers)), (table("t", columns=columns),), source)
        lake.root.mkdir()
        report = lake.ingest(*lines)
        assert not report.failed, [each.error for each in report.tables if each.error]
        taken, skipped = sum(each.events for each in report.tables), sum(report.skipped.values())
        letter_rows = {position for _, position, _, _ in lake.dead_letters()} if report.dead_letters else set()
        assert report.events == taken + skipped + len(_of_no_table(lake, bool(letter_rows)))
        assert report.events == len(lines)
        assert all(reason for _, _, reason, _ in (lake.dead_letters() if letter_rows else ()))

    (every if IS_DEEP else seed(7)(every))()


def _of_no_table(lake: Lake, has_letters: bool) -> list[object]:
    if not has_letters:
        return []
    return [row for row in lake.rows("shop__dead_letters", "position", "table_name") if row[1] is None]


@pytest.mark.release
def test_a_message_that_is_too_long_is_a_dead_letter(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(PAYLOADS) >= 60 and limits.MAX_EVENT == 32_000_000
    lake = Lake(spark, tmp_path, (table("t", columns={"id": "int", "name": "string"}),))
    lake.ingest(event("c", {"id": 1, "name": "x"}), event("c", {"id": 2, "name": "y" * 32_000_000}))
    assert lake.rows("t", "id") == [(1,)]
    assert [(position, reason) for _, position, reason, _ in lake.dead_letters()] == [(2, limits.TOO_LONG)]
