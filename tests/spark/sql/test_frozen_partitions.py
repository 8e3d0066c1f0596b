"""Frozen partitions on Spark: each strategy leaves their rows, an edit too; rows with fewer columns are read."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.run.result import ModelResult
from tests.faults.shop import ORDERS, PROFILE, Rows, Shop
from tests.unit.app.test_frozen_partitions import DAILY, QUERIES, expected, freeze, orders, read, split

SPARK = PROFILE.replace("      schema: dws\n", "      schema: dws\n      delta_engine: spark\n")
WIDER = "select day, id, amount * 2 as amount, customer from {{ ref('orders') }} where amount > 5"


def run(shop: Shop, full_refresh: bool = False) -> dict[str, ModelResult]:
    with Project.load(shop.root) as project:
        results = project.run(full_refresh=full_refresh).results
    return {result.node.unique_id: result for result in results if isinstance(result, ModelResult)}


@pytest.mark.release  # DuckDB runs the same programs in `tests/unit/app`; here Spark nets and commits their rows
def test_live_rows_follow_and_frozen_rows_stay(tmp_path: Path) -> None:
    shop, dice = Shop.changed(tmp_path, random.Random(1), 8), random.Random(7)
    for path in (shop.root / "models").iterdir():
        path.unlink()
    (shop.root / "profiles.yml").write_text(SPARK)
    before = "2024-01-18"
    freeze(shop, before)
    shutil.rmtree(shop.root / "warehouse/dws/daily")  # a table that is there keeps what it has
    run(shop)
    assert split(shop.stored(DAILY), before)[0]
    for number in range(3):
        kept = {unique_id: split(shop.stored(unique_id), before)[0] for unique_id in QUERIES}
        shop.commit(ORDERS, dice)
        done = run(shop, full_refresh=number == 2)
        assert {each.engine for each in done.values()} == {"spark"}
        for unique_id in QUERIES:
            frozen, live = split(shop.stored(unique_id), before)
            assert frozen == kept[unique_id] and live == split(expected(unique_id, orders(shop)), before)[1], unique_id
        if number < 2:
            strategies = [done[unique_id].strategy for unique_id in QUERIES]
            assert strategies == ["row_based", "aggregate_merge", "recompute_merge"]
    kept = {DAILY: split(shop.stored(DAILY), before)[0]}
    freeze(shop, before, daily=WIDER)
    refused = run(shop)[DAILY]
    assert refused.status == "error" and "rows of its frozen partitions would be lost" in refused.message
    (shop.root / "profiles.yml").write_text(PROFILE)
    assert run(shop)[DAILY].engine == "duckdb"
    (shop.root / "profiles.yml").write_text(SPARK)
    shop.commit(ORDERS, dice)
    done = run(shop)[DAILY]
    assert (done.engine, done.strategy) == ("spark", "row_based")
    frozen, live = split(read(shop, "daily"), before)
    assert [row[:3] for row in frozen] == kept[DAILY] and {row[3] for row in frozen} == {None}
    assert live == sorted((d, k, a * 2, c) for k, c, a, d in orders(shop) if a > 5 and d >= before)
    with Project.load(shop.root) as project:
        assert [each.status for each in project.verify()] == ["pass"] * 3


@pytest.mark.release
@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_frozen_rows_of_merge_on_read_tables_stay(engine: str, tmp_path: Path) -> None:
    shop, dice, before = Shop.changed(tmp_path, random.Random(1), 8), random.Random(7), "2024-01-18"
    for path in (shop.root / "models").iterdir():
        path.unlink()
    (shop.root / "profiles.yml").write_text(SPARK.replace("delta_engine: spark", f"delta_engine: {engine}"))
    freeze(shop, before, "mor")
    shutil.rmtree(shop.root / "warehouse/dws/daily")
    run(shop)
    for number in range(4):
        kept = {unique_id: split(rows(shop, unique_id), before)[0] for unique_id in QUERIES}
        assert all(kept.values())
        shop.commit(ORDERS, dice)
        done = run(shop, full_refresh=number == 2)
        assert {each.status for each in done.values()} <= {"success", "no-op"}, [each.message for each in done.values()]
        for unique_id in QUERIES:
            frozen, live = split(rows(shop, unique_id), before)
            assert frozen == kept[unique_id] and live == split(expected(unique_id, orders(shop)), before)[1], unique_id


def rows(shop: Shop, unique_id: str) -> Rows:
    return read(shop, unique_id.rpartition(".")[2])
