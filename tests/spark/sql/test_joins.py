"""Joins, nested aggregates and windows on real tables: several inputs change at once, each model stays its query."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tests.spark.lake import ORDERS, Lake

D = Decimal

MODELS = {
    "inner_rows": ("row_based", "select o.id, p.name, o.amount from @orders o join @people p on o.buyer = p.id"),
    "left_rows": ("group_recompute", "select o.id, p.name from @orders o left join @people p on o.buyer = p.id"),
    "full_rows": (
        "group_recompute",
        "select o.id as order_id, p.id as person from @orders o full join @people p on o.buyer = p.id",
    ),
    "behind_a_comma": (
        "group_recompute",
        "select o.id as order_id, q.id as other, p.id as person from @orders o, @people q"
        " right join @people p on o.buyer = p.id",
    ),
    "without_orders": (
        "group_recompute",
        "select p.id, p.name from @people p where not exists (select 1 from @orders o where o.buyer = p.id)",
    ),
    "by_name": (
        "aggregate_merge",
        "select p.name, count(*) as n, sum(o.amount) as total, max(o.amount) as most "
        "from @orders o join @people p on o.buyer = p.id group by p.name",
    ),
    "big_names": (
        "group_recompute",
        "select p.name, sum(o.amount) as total from @orders o join @people p on o.buyer = p.id "
        "group by p.name having sum(o.amount) > 5",
    ),
    "top_of_city": (
        "group_recompute",
        "select id, city, amount from @orders qualify row_number() over (partition by city order by amount desc) = 1",
    ),
    "sizes": (
        "aggregate_merge",
        "select n, count(*) as cities from (select city, count(*) as n from @orders group by city) as c group by n",
    ),
    "both": ("group_recompute", "select buyer as id from @orders intersect select id from @people"),
}


@pytest.mark.parametrize(("join", "alone"), [("right", []), ("full", [(1, 5, None), (2, 1, None), (2, 5, None)])])
def test_spark_joins_from_left_to_right_commas_as_well(spark: SparkSession, join: str, alone: list[object]) -> None:
    tables = "(values (1), (2)) as a(x), (values (1), (5)) as b(y)"
    query = f"select * from {tables} {join} join (values (1), (7)) as c(z) on y = z and x = z"
    rows = sorted(map(tuple, spark.sql(query).collect()), key=str)
    assert rows == sorted([(1, 1, 1), (None, None, 7), *alone], key=str)


@pytest.mark.release
@pytest.mark.checklist(61)
def test_models_over_several_changing_inputs_equal_their_queries(lake: Lake) -> None:
    orders, people = lake.source("orders", ORDERS, partition="ym"), lake.source("people", "id int, name string")
    for name, (_, sql) in MODELS.items():
        lake.model(name, sql)
    orders.upsert(
        (1, 1, D("5.00"), "x", "m1"), (2, 2, D("7.00"), "x", "m1"), (3, 1, D("1.00"), "y", "m2"),
        (4, None, D("2.00"), None, "m2"), (5, 9, None, "y", "m2"),
    )  # fmt: skip
    people.upsert((1, "a"), (2, "b"), (3, "c"))
    assert set(lake.run_well().values()) == {"full_refresh"}
    lake.assert_maintained()
    orders.upsert(
        (1, 2, D("5.00"), "x", "m1"), (6, 3, D("9.00"), "y", "m2"), (4, 1, D("2.00"), "z", "m2"),
        delete=[(2, 2, D("7.00"), "x", "m1")],
    )  # fmt: skip
    people.upsert((2, "a"), (9, None), delete=[(1, "a")])
    assert lake.run_well() == {name: strategy for name, (strategy, _) in MODELS.items()}
    lake.assert_maintained()
    assert set(lake.run_well().values()) == {"no_op"}
    people.upsert((1, "back"))
    lake.run_well()
    lake.assert_maintained()
