"""Tables do not depend on how Spark deals rows out: other shuffle partitions and row orders give identical tables."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.spark_engine import SparkEngine
from tests.spark.lake import ORDERS, Lake, Row, ordered

D = Decimal

MODELS = {
    "totals": "select city, count(*) as n, sum(amount) as total, min(amount) as least, avg(amount) as mean "
    "from @orders group by city",
    "ties": "select id, city, row_number() over (partition by city order by ym) as place from @orders",
    "lists": "select city, max_by(id, ym) as last_id, collect_list(buyer) as buyers, count(distinct ym) as months "
    "from @orders group by city",
    "pairs": "select l.id, r.id as other from @orders l join @orders r on l.buyer = r.buyer and l.id < r.id",
}
FIRST: list[Row] = [(i, i % 5, D(i), f"c{i % 3}", "m1") for i in range(1, 25)]
THEN: list[Row] = [(i, i % 4, D(i), f"c{i % 2}", "m1") for i in range(1, 40, 3)]
GONE: list[Row] = [(i, 0, D(0), "", "") for i in (2, 9, 24)]


def tables(lake: Lake, *, backwards: bool) -> dict[str, list[tuple[object, ...]]]:
    """Every row of each model after a build and a change, hidden columns too."""
    step = -1 if backwards else 1
    orders = lake.source("orders", ORDERS)
    for name, sql in MODELS.items():
        lake.model(name, sql)
    orders.upsert(*FIRST[::step])
    lake.run_well()
    orders.upsert(*THEN[::step], delete=GONE[::step])
    strategies = lake.run_well()
    assert "full_refresh" not in strategies.values(), strategies
    lake.assert_maintained()
    rows = {}
    for name in MODELS:
        timeline = lake.timeline(name)
        assert timeline.frontier is not None
        rows[name] = ordered(CopyOnWriteFeed(lake.spark, timeline).current(timeline.frontier, hidden=True))
    return rows


@pytest.mark.release
@pytest.mark.checklist(16)
def test_other_shuffle_partitions_and_row_orders_give_identical_tables(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SparkEngine.session
    outcomes = []
    for partitions, adaptive, backwards in (("1", "false", False), ("7", "true", True)):

        def session(engine: SparkEngine, partitions: str = partitions, adaptive: str = adaptive) -> SparkSession:
            made = real(engine)
            made.conf.set("spark.sql.shuffle.partitions", partitions)
            made.conf.set("spark.sql.adaptive.enabled", adaptive)
            return made

        monkeypatch.setattr(SparkEngine, "session", session)
        root = tmp_path / partitions
        root.mkdir()
        outcomes.append(tables(Lake(spark, root), backwards=backwards))
    assert outcomes[0] == outcomes[1]
    assert all(outcomes[0].values())
