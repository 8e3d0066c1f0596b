"""The shop's lake: the document's figures after each of its changes, what it leaves out, and a shop of any size."""

from __future__ import annotations

from decimal import Decimal as D
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.shop.generate import Shop, begin, go_on
from demo.shop.log import land
from sqlmesh_like.cli.app import main
from sqlmesh_like.hudi.timeline import Timeline
from tests.levels import IS_DEEP
from tests.spark.demo_lake import DemoLake

ROUNDS, TIMES = (10, 1000) if IS_DEEP else (1, 10)
FOLLOWED = () if IS_DEEP else ("-s", "+revenue_by_user", "+user_agg")
"""Models of the large shop: all, or those of one chain of joins and sums."""


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoLake:
    return DemoLake.of("shop", spark, tmp_path, monkeypatch)


def devices(lake: DemoLake) -> dict[object, object]:
    return {device: number for number, device in lake.rows("user_agg")}


def users(lake: DemoLake, *columns: str) -> list[tuple[object, ...]]:
    stored = lake.spark.read.format("hudi").load(lake.uri("user", "ods"))
    return sorted(
        tuple(row) for row in stored.select("id", "name", "device_model", "email", "phone", *columns).collect()
    )


def follow(lake: DemoLake, *names: str, models: str = "*") -> None:
    """Take these parts of the log in, and bring models up to date."""
    land(lake.root, *names)
    lake.sml("ingest")
    lake.sml("run", "-s", models)


ALL_KINDS = (("user", "ods"), ("dwd_order_detail", "dwd"), ("user_agg", "dws"))
FIRST = (1, "customer-01", "dm-01", "abc01@email.com", "188776xxxxx")
SECOND = (2, "customer-02", "dm-02", "abc02@email.com", "166776xxxxx")
THIRD = ("dm-03", "abc03@email.com", "199776xxxxx", 18)


@pytest.mark.checklist(3, 11, 16, 19, 25, 27, 29, 31, 41, 56, 57, 58, 59, 61, 63, 65, 67, 69)
def test_every_change_of_the_document_and_what_it_leaves_out(shop: DemoLake) -> None:
    follow(shop, "1-snapshot", "2-new-orders")
    assert users(shop) == [FIRST, SECOND]
    assert devices(shop) == {"dm-01": 1, "dm-02": 1}
    amounts = {row[0]: row[9] for row in shop.rows("dwd_order_detail", "dwd")}
    assert amounts == {1: D("12512.00"), 2: D("6759.30"), 3: D("2752.64"), 4: D("3604.96")}
    assert shop.rows("revenue_by_user") == [(1, 2, 130, D("19271.30")), (2, 2, 38, D("6357.60"))]
    assert shop.rows("revenue_by_product") == [(1, 2, 122, D("15264.64")), (2, 2, 46, D("10364.26"))]
    months = shop.rows("revenue_by_month")
    assert [row[:4] for row in months] == [("202206", 2, 130, D("19271.30")), ("202207", 2, 38, D("6357.60"))]
    assert D("19271.30") + D("6357.60") == D("25628.90"), "the grand total"
    assert sorted(path.name for path in Path(shop.uri("user_order", "ods")).glob("[!.]*")) == [
        "year_month=202206", "year_month=202207",
    ]  # fmt: skip

    follow(shop, "3-age", models="+user_agg")
    assert devices(shop) == {"dm-01": 1, "dm-02": 1, "dm-03": 1}
    assert users(shop, "age") == [(*FIRST, None), (*SECOND, None), (3, "customer-03", *THIRD)]
    assert shop.strategy("user_agg") == "aggregate_merge"

    follow(shop, "4-renamed", models="+user_agg")
    assert devices(shop) == {"dm-01": 1, "dm-02": 1, "dm-03": 1}, "an update is not one user more"

    before = shop.frontier("user_agg")
    follow(shop, "5-another", models="+user_agg")
    assert devices(shop) == {"dm-01": 1, "dm-02": 1, "dm-03": 2}
    assert users(shop, "age") == [
        (*FIRST, None), (*SECOND, None), (3, "new-customer-03", *THIRD), (4, "customer-03", *THIRD),
    ]  # fmt: skip
    assert {write.partition for write in Timeline(shop.uri("user", "ods")).data_commits[-1].writes} == {
        "year_month=202207"
    }, "users of June are not written again"
    moved = shop.json("changes", "user_agg", "--since", before)
    assert [(row["_change"], row["device_model"], row["num"]) for row in moved] == [
        ("update_before", "dm-03", 1), ("update_after", "dm-03", 2),
    ]  # fmt: skip

    follow(shop, "6-users", "7-orders")
    after(shop)
    kinds = [row["kind"] for row in shop.json("history", "user_agg")]
    assert kinds == ["bulk_insert", *["upsert"] * (len(kinds) - 1)], "a DWS table is updated in place"
    assert all(Timeline(shop.uri(name, schema)).is_cow for name, schema in ALL_KINDS)
    assert not list(Path(shop.root / "warehouse").rglob("*.log.*")), "copy-on-write tables have base files only"
    # Without a JVM, from the files alone.
    message = shop.json("show", "revenue_by_user")
    assert sorted((row["user_id"], row["orders"], D(str(row["revenue"]))) for row in message) == [
        (user, orders, revenue) for user, orders, _, revenue in shop.rows("revenue_by_user")
    ]
    orders = Path(shop.uri("user_order", "ods"))
    for file in orders.glob("year_month=202206/*.parquet"):
        spoil_pages(file)
    of_month = "select sum(onum) as n from {{{{ source('shop', 'user_order') }}}} where year_month = '{}'".format
    assert shop.json("show", "--inline", of_month("202207")) == [{"n": 23}], "of other months the footer is read alone"
    assert main(["show", "--inline", of_month("202206"), "--project-dir", str(shop.root)]) == 1


def spoil_pages(file: Path) -> None:
    """Make the values of a Parquet file unreadable; its footer, with the smallest and largest of each column, stays."""
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:4] + b"!" * (len(content) - 4 - footer) + content[-footer:])
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def after(lake: DemoLake) -> None:
    """Users took other devices, a price rose; an order is gone, one moved, one came late, one is larger, one is new."""
    assert devices(lake) == {"dm-01": 1, "dm-03": 3}, "nobody has dm-02"
    assert lake.rows("revenue_by_user") == [
        (1, 1, 100, D("13050.00")), (2, 3, 47, D("8503.75")), (3, 1, 5, D("652.50")),
    ]  # fmt: skip
    assert lake.rows("revenue_by_product") == [(1, 3, 127, D("16573.50")), (2, 2, 25, D("5632.75"))]
    assert lake.rows("revenue_by_month") == [
        ("202206", 3, 129, D("17498.17"), D("1577.17"), D("13050.00")),
        ("202207", 2, 23, D("4708.08"), D("652.50"), D("4055.58")),
    ]  # fmt: skip
    assert sorted(lake.rows("buyers_month")) == [("202206", 2), ("202207", 2)]
    assert sorted(lake.rows("product_rank")) == [
        ("202206", 1, D("15921.00"), 1), ("202206", 2, D("1577.17"), 2),
        ("202207", 1, D("652.50"), 2), ("202207", 2, D("4055.58"), 1),
    ]  # fmt: skip
    assert lake.strategy("buyers_month") == "partition_rescan"
    assert lake.strategy("product_rank") == "group_recompute"
    assert len(lake.rows("shop__dead_letters", "ods")) == 1


@pytest.mark.release
@pytest.mark.checklist(59, 61, 62)
@pytest.mark.timeout(3600)
def test_a_large_shop_is_followed_round_by_round(shop: DemoLake) -> None:
    landing = shop.root / "landing" / "shop"
    made = begin(landing, users=2 * TIMES, products=2 * TIMES, orders=4 * TIMES, seed=1)
    for number in range(ROUNDS):
        shop.sml("ingest")
        shop.sml("run", *FOLLOWED)
        assert_followed(shop, made)
        go_on(landing, made, 2 * TIMES, f"{number:02}")
    shop.sml("ingest")
    shop.sml("run", *FOLLOWED)
    assert_followed(shop, made)
    shop.sml("verify", *FOLLOWED)


def assert_followed(lake: DemoLake, made: Shop) -> None:
    """Sums over the shop's database as Python adds them up."""
    counts: dict[object, int] = {}
    for user in made.user.values():
        counts[user["device_model"]] = counts.get(user["device_model"], 0) + 1
    assert devices(lake) == counts
    prices = {number: D(str(product["pprice"])) for number, product in made.product.items()}
    total = sum(int(str(order["onum"])) * prices[int(str(order["pid"]))] for order in made.user_order.values())
    for name in ("revenue_by_user", *(("revenue_by_product", "revenue_by_month") if IS_DEEP else ())):
        assert sum(D(str(row[3])) for row in lake.rows(name)) == total, name
