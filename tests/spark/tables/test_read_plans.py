"""Changes of tables that other writers made, as Spark reads them; DuckDB reads the same (`test_read_plans` there)."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.names import KEY, WEIGHT
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from tests.hand_made_table import SCENARIOS, scenario


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_change_is_what_happened(spark: SparkSession, tmp_path: Path, name: str) -> None:
    case = scenario(tmp_path / "t", name)
    net: dict[tuple[object, ...], int] = {}
    keys: dict[object, int] = {}
    for *row, key, weight in (
        change_feed(spark, case.table.timeline)
        .changes(case.start, case.end)
        .select("id", "v", "p", KEY, WEIGHT)
        .collect()
    ):
        net[tuple(row)] = net.get(tuple(row), 0) + weight
        keys[(key, *row)] = keys.get((key, *row), 0) + weight
    assert {row: weight for row, weight in net.items() if weight} == case.change
    assert sum(map(abs, keys.values())) == sum(map(abs, case.change.values())), "rows that stay have one key"
