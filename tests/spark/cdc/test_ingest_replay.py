"""Ingestion on real Hudi: the generated shop arrives whole, whatever breaks on the way."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from demo.shop.generate import generate
from sqlmesh_like.cdc.stream import batch
from sqlmesh_like.errors import ProjectError
from tests.spark.ingest_lake import BY_MONTH, Lake, report_of, table

TYPES = {"id": "int", "create_time": "timestamp", "modify_time": "timestamp"}
COLUMNS = {"user": "id", "product": "pid", "user_order": "id"}


def _declared(name: str, key: str) -> Any:
    columns = TYPES if name == "user_order" else None
    return table(
        name, columns=columns, primary_key=(key,), order_by=("modify_time",), partition_by=BY_MONTH, database="test_db"
    )


def _assert_is(lake: Lake, shop: Any) -> None:
    for name, key in COLUMNS.items():
        expected = shop.rows(name)
        columns = sorted({column for row in expected.values() for column in row})
        rows = lake.rows(name, *columns, "year_month")
        wanted = [
            (*(_plain(row.get(column)) for column in columns), f"{row['create_time']:%Y%m}")
            for row in expected.values()
        ]
        assert rows == sorted(wanted, key=str), f"{name} by {key}"


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


@pytest.mark.release
@pytest.mark.checklist(15, 36)
def test_a_crash_between_two_tables_and_a_lost_checkpoint_change_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = generate(tmp_path / "log", users=40, products=10, orders=80, changes=150, seed=7)
    lake = Lake(spark, tmp_path, tuple(_declared(*item) for item in COLUMNS.items()))
    lake.landing.mkdir()
    for path in (tmp_path / "log" / "part1").iterdir():
        shutil.copy(path, lake.landing / f"1-{path.name}")
    lake.run()
    for path in (tmp_path / "log" / "part2").iterdir():
        shutil.copy(path, lake.landing / f"2-{path.name}")
    real = batch.commit

    def dies(place: Any, decoded: Any, mark: Any) -> Any:
        if decoded.layout.table.name == "user_order":
            raise ProjectError("killed")  # other errors of a table end its part of the batch alone
        return real(place, decoded, mark)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "commit", dies)
        with pytest.raises(ProjectError, match="killed"):
            lake.run()
    assert (lake.commits("user"), lake.commits("user_order")) == (2, 1)
    again = lake.run()
    assert report_of(again, "user").replayed > 0
    assert (lake.commits("user"), lake.commits("user_order")) == (2, 2)
    _assert_is(lake, shop)
    shutil.rmtree(f"{lake.warehouse}/_sml/checkpoints")
    lake.run()
    _assert_is(lake, shop)
