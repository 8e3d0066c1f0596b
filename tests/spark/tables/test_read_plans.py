"""Changes of tables that other writers made, as Spark reads them; DuckDB reads the same (`test_read_plans` there)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.names import KEY, WEIGHT
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from tests.hand_made_table import SCENARIOS, scenario


def net(frame: DataFrame) -> Counter[tuple[object, ...]]:
    """Rows by their weights; the weight is the last column."""
    weights: Counter[tuple[object, ...]] = Counter()
    for *row, weight in frame.collect():
        weights[tuple(row)] += weight
    return Counter({row: weight for row, weight in weights.items() if weight})


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_change_is_what_happened(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = scenario(tmp_path / "t", name)
    change = change_feed(spark, case.table.timeline).changes(case.start, case.end)
    assert net(change.select("id", "v", "p", WEIGHT)) == case.change


def test_rows_that_stay_have_one_key_though_keys_repeat_from_now_on(spark: SparkSession, tmp_path: Path) -> None:
    case = scenario(tmp_path / "t", "inserted beside the same key")
    change = change_feed(spark, case.table.timeline).changes(case.start, case.end)
    assert net(change.select(KEY, "v", WEIGHT)) == {("3/p=x/1/20240101000003000_0_1", 12): 1}
