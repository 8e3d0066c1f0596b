"""Table services between runs change no row: compaction, clustering and cleaning of inputs and of maintained tables."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.spark.lake import COMPACT, ORDERS, Lake, Table

D = Decimal
SIMPLE = {"hoodie__index__type": "SIMPLE"}
"""The bucket index of our own writers knows no clustering."""
MODELS = ("flat", "spent", "known", "months")


def order(id: int, buyer: int, amount: str, ym: str = "m1", city: str = "x") -> tuple[object, ...]:
    return (id, buyer, D(amount), city, ym)


def declare(lake: Lake, config: str = "") -> None:
    """A model of each kind of work, all over `orders` and one over `buyers` too."""
    lake.model("flat", f"{{{{ config(partition_by='ym'{config}) }}}} select id, amount * 2 as twice, ym from @orders")
    lake.model(
        "spent",
        f"{{{{ config(alias='spent'{config}) }}}} "
        "select buyer, sum(amount) as total, max(amount) as top, count(*) as n from @orders group by buyer",
    )
    lake.model(
        "known",
        f"{{{{ config(unique_key='id'{config}) }}}} "
        "select o.id, b.name from @orders as o join @buyers as b on o.buyer = b.id",
    )
    lake.model(
        "months",
        f"{{{{ config(partition_by='ym'{config}) }}}} "
        "select ym, count(distinct buyer) as buyers from @orders group by ym",
    )


def cluster(lake: Lake, table: Table) -> None:
    options = "hoodie.metadata.enable=false,hoodie.clustering.plan.strategy.small.file.limit=100000000"
    lake.spark.sql(f"call run_clustering(path => '{table.uri}', options => '{options}')").collect()
    assert any(commit.operation == "CLUSTER" for commit in table.timeline.commits)


@pytest.mark.release
@pytest.mark.checklist(45, 46)
def test_services_of_inputs_are_no_change(lake: Lake) -> None:
    orders = lake.source("orders", ORDERS, partition="ym", table_type="mor")
    buyers = lake.source("buyers", "id int, name string", table_type="cow")
    declare(lake)
    buyers.write((1, "a"), (2, "b"), **SIMPLE)
    orders.write(order(1, 1, "5"), order(2, 1, "6"), order(3, 2, "7", "m2"), **SIMPLE)
    lake.run_well()
    # A change with a move, then services before and after the next run.
    orders.upsert(order(1, 2, "5"), order(3, 2, "7"), order(4, 9, "1"), delete=[order(3, 2, "7", "m2")], **SIMPLE)
    lake.compaction(orders.uri, "schedule")
    strategies = lake.run_well()
    assert strategies == {
        "flat": "row_based", "spent": "aggregate_merge", "known": "row_based", "months": "partition_rescan",
    }  # fmt: skip
    lake.assert_maintained()
    lake.compaction(orders.uri, "run")
    cluster(lake, orders)
    cluster(lake, buyers)
    assert lake.run_well() == dict.fromkeys(MODELS, "no_op")
    orders.upsert(order(1, 1, "8"), order(5, 2, "3", "m3"), delete=[order(2, 1, "6")], **SIMPLE)
    buyers.upsert((9, "z"), (2, "B"), **SIMPLE)
    clean_history(lake.spark, orders.uri, retain=4)
    assert lake.run_well() == strategies
    lake.assert_maintained()
    assert lake.rows("known") == [(1, "a"), (3, "B"), (4, "z"), (5, "B")]
    assert lake.rows("spent") == [
        (1, D("8.00"), D("8.00"), 1),
        (2, D("10.00"), D("7.00"), 2),
        (9, D("1.00"), D("1.00"), 1),
    ]
    # An overwritten partition, and a service on top of it.
    orders.write(order(6, 1, "2"), operation="insert_overwrite", **SIMPLE)
    cluster(lake, orders)
    assert lake.run_well() == {**strategies, "known": "row_based"}
    lake.assert_maintained()
    assert lake.rows("flat") == [(5, D("6.00"), "m3"), (6, D("4.00"), "m1")]
    assert lake.run_well() == dict.fromkeys(MODELS, "no_op")


@pytest.mark.release
def test_maintained_merge_on_read_tables_are_compacted_read_and_rebuilt(lake: Lake) -> None:
    lake.use_engine("spark")  # DuckDB writes no commit where a change comes to nothing
    orders = lake.source("orders", ORDERS, partition="ym", table_type="mor")
    buyers = lake.source("buyers", "id int, name string", table_type="mor")
    config = ", table_type='mor', hudi={'hoodie.compact.inline.max.delta.commits': '2'}"
    declare(lake, config)
    lake.model("above", "{{ config(table_type='mor') }} select n, count(*) as c from {{ ref('spent') }} group by n")
    buyers.upsert((1, "a"), (2, "b"))
    orders.upsert(order(1, 1, "5"), order(2, 1, "6"), order(3, 2, "7", "m2"))
    assert set(lake.run_well().values()) == {"full_refresh"}
    incremental = {
        "flat": "row_based", "spent": "aggregate_merge", "known": "row_based", "months": "partition_rescan",
        "above": "aggregate_merge",
    }  # fmt: skip
    orders.upsert(order(1, 2, "5"), order(3, 2, "7"), delete=[order(3, 2, "7", "m2")])
    assert lake.run_well() == incremental
    lake.assert_maintained()
    assert lake.rows("flat") == [(1, D("10.00"), "m1"), (2, D("12.00"), "m1"), (3, D("14.00"), "m1")]
    orders.upsert(
        order(1, 1, "5", "m2"), order(4, 1, "9", "m3"), delete=[order(1, 2, "5"), order(2, 1, "6")], **COMPACT
    )
    buyers.upsert((2, "B"), delete=[(1, "a")])
    assert lake.run_well() == incremental
    lake.assert_maintained()
    assert lake.rows("known") == [(3, "B")]
    assert lake.rows("spent") == [(1, D("14.00"), D("9.00"), 2), (2, D("7.00"), D("7.00"), 1)]
    assert lake.rows("above") == [(1, 1), (2, 1)]
    compacted = [name for name in incremental if any(c.operation == "COMPACT" for c in lake.timeline(name).commits)]
    assert {"flat", "spent", "known"} <= set(compacted)
    # The change of `spent` had no effect on `above`: a commit without rows took its frontier on.
    assert lake.run_well() == dict.fromkeys(incremental, "no_op")
    for name in incremental:
        assert not lake.timeline(name).is_cow
        assert len(lake.keys(name)) == len(set(lake.keys(name)))


def test_a_merge_on_read_target_is_rebuilt_in_place_and_changes_its_type(lake: Lake) -> None:
    orders = lake.source("orders", ORDERS, partition="ym")
    query = "select id, amount * 2 as twice, ym from @orders"
    lake.model("flat", f"{{{{ config(partition_by='ym', table_type='mor') }}}} {query}")
    orders.upsert(order(1, 1, "5"), order(2, 1, "6"), order(3, 2, "7", "m2"))
    lake.run_well()
    orders.upsert(order(2, 1, "8"), delete=[order(1, 1, "5")])
    assert lake.run_well() == {"flat": "row_based"}
    assert lake.run(full_refresh=True)["flat"].status == "success"
    orders.upsert(order(4, 4, "1", "m3"), delete=[order(3, 2, "7", "m2")])
    assert lake.run_well() == {"flat": "row_based"}
    assert not lake.timeline("flat").is_cow
    assert lake.rows("flat") == [(2, D("16.00"), "m1"), (4, D("2.00"), "m3")]
    lake.model("flat", query)
    assert lake.run_well() == {"flat": "full_refresh"}
    assert lake.timeline("flat").is_cow
    assert lake.rows("flat") == [(2, D("16.00"), "m1"), (4, D("2.00"), "m3")]
