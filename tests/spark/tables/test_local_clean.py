"""History that is removed without a JVM, beside Hudi: the same files go, Hudi reads what is left and goes on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.services.archive import _archived_instants
from sqlmesh_like.hudi.services.local_clean import clean_here
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.store_client import delete_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.faults.shop import ORDERS, Rows, Shop
from tests.faults.store_shop import StoreShop
from tests.faults.test_first_builds import SEEDS
from tests.services.s3 import S3Server
from tests.services.s3 import server as server


def read(spark: SparkSession, uri: str, **options: str) -> Rows:
    """The rows as Hudi's reader has them."""
    frame = spark.read.format("hudi").options(**options).load(uri)
    return sorted(tuple(row) for row in frame.selectExpr("id", "customer", "amount", "cast(day as string)").collect())


def changes(dice: random.Random, shop: Shop, number: int) -> None:
    for _ in range(number):
        shop.replace_all(ORDERS) if dice.random() < 0.1 else shop.commit(ORDERS, dice)


@pytest.mark.release
def test_hudi_removes_the_same_and_goes_on_after_it(spark: SparkSession, tmp_path: Path) -> None:
    dice, shop = random.Random(11), Shop.of_inputs(tmp_path)
    shop.buckets = 4
    uri, copy = shop.timeline(ORDERS).uri, str(tmp_path / "copy")
    for retain in (3, 6, 1):
        changes(dice, shop, 15)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(uri, copy)
        assert clean_here(uri, retain)
        clean_history(spark, copy, retain)
        ours, hudis = Timeline(uri), Timeline(copy)
        assert ours.data_files == hudis.data_files
        assert ours.commit_instants == hudis.commit_instants
        commits = {frontier.partition("_")[0] for _, frontier in shop.rows_at}
        assert _archived_instants(ours) & commits == _archived_instants(hudis) & commits != set()
    for _ in range(14):
        changes(dice, shop, 4)
        assert clean_here(uri, 1)
    assert any(name.endswith("_1.parquet") for name in Timeline(uri).history_names), "the history has been merged"
    changes(dice, shop, 6)
    newest = [frontier for name, frontier in shop.rows_at if name == ORDERS][-6:]
    assert read(spark, uri) == shop.rows_at[ORDERS, newest[-1]]
    assert read(spark, uri, **{"as.of.instant": newest[0].partition("_")[0]}) == shop.rows_at[ORDERS, newest[0]]
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": newest[-2].partition("_")[2],
    }
    assert {*read(spark, uri, **options)} <= {*shop.rows_at[ORDERS, newest[-1]]}
    clean_history(spark, uri, 2)
    assert read(spark, uri) == shop.rows_at[ORDERS, newest[-1]]
    changes(dice, shop, 12)
    assert clean_here(uri, 2), "and this process goes on after Hudi"
    assert read(spark, uri) == shop.stored(ORDERS)


@pytest.mark.release
def test_hudi_goes_on_with_a_table_made_and_cleaned_on_a_store(
    spark: SparkSession, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are copied to a disk for Hudi, which is the same to it but for the scheme of paths."""
    store = StoreShop.copied(Shop.made(tmp_path / "shop"), server, "made-and-cleaned")
    delete_files(store.warehouse, folder(store.warehouse).files())
    for path, text in SEEDS.items():
        (store.root / path).write_text(text)
    monkeypatch.chdir(store.root)
    assert main(["build"]) == 0
    frontier, dice = store.timeline(ORDERS).frontier, random.Random(12)
    assert frontier is not None
    store.rows_at[ORDERS, frontier] = store.stored(ORDERS)
    store.replace_all(ORDERS)  # with the keys of later changes
    for copies, retain in enumerate((20, 6), 1):
        changes(dice, store, 12)
        assert clean_here(store.table(ORDERS), retain)
        local = Shop(tmp_path / f"copy{copies}", dict(store.rows_at))
        uri, place = local.timeline(ORDERS).uri, folder(store.table(ORDERS))
        for path in place.files():
            Path(uri, path).parent.mkdir(parents=True, exist_ok=True)
            Path(uri, path).write_bytes(place.read(path))
        assert read(spark, uri) == store.stored(ORDERS)
    shutil.rmtree(Path(uri, ".hoodie/.locks"), ignore_errors=True)
    clean_history(spark, uri, 2)
    assert read(spark, uri) == store.stored(ORDERS) and len(Timeline(uri).data_commits) <= 6
    changes(dice, local, 12)
    assert clean_here(uri, 2) and read(spark, uri) == local.stored(ORDERS)
