"""`sml init --example cdc` on Spark: its events become tables, and its later events are followed."""

from __future__ import annotations

import shutil
from decimal import Decimal as D
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from tests.spark.demo_lake import DemoLake


def test_the_example_is_ingested_built_and_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "shop", "--example", "cdc"]) == 0
    lake = DemoLake.at(tmp_path / "shop", spark, monkeypatch)
    lake.sml("ingest")
    lake.sml("build")
    assert lake.rows("revenue_by_country") == [("NZ", 3, D("35.75")), ("PT", 1, D("8.00"))], "as on DuckDB"
    shutil.copy(lake.root / "later/2-changes.jsonl", lake.root / "landing/shop")
    lake.sml("ingest")
    lake.sml("build")
    assert lake.rows("revenue_by_country") == [("FR", 2, D("14.75")), ("NZ", 2, D("32.25"))]
    assert lake.strategy("revenue_by_country") == "aggregate_merge"
