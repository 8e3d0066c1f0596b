"""Hand-written incremental SQL on real Hudi: dbt's four strategies, and what they do to the columns of a table."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.spark.lake import ORDERS, Lake, Table

D = Decimal
NEW = "{% if is_incremental() %} where id > (select max(id) from {{ this }}){% endif %}"
LATE = "{% if is_incremental() %} where id % 2 = 0{% endif %}"


def config(strategy: str, **more: str) -> str:
    named = {"incremental_strategy": f"'{strategy}'", **more}
    return "{{ config(" + ", ".join(f"{key}={value}" for key, value in named.items()) + ") }} "


@pytest.fixture
def orders(lake: Lake) -> Table:
    table = lake.source("orders", ORDERS, partition="ym")
    table.upsert(*[(i, i % 2, D(i), "Oslo", f"m{i % 2}") for i in (1, 2, 3, 4)])
    return table


def test_the_four_strategies_bring_in_what_the_branch_gives(lake: Lake, orders: Table) -> None:
    lake.model("added", config("append") + f"select id, amount from @orders {NEW}")
    lake.model("copied", config("append") + f"select city from @orders {LATE}")
    more = {"unique_key": "'id'", "partition_by": "'ym'", "merge_exclude_columns": "['city']"}
    lake.model("merged", config("merge", **more) + f"select id, amount, city, ym from @orders {LATE}")
    near = {
        "unique_key": "'id'",
        "incremental_predicates": "['DBT_INTERNAL_DEST.id > 1', 'DBT_INTERNAL_SOURCE.id < 6']",
    }
    changed = f"select id, amount from @orders {LATE.replace('id % 2 = 0', 'id in (1, 4)')}"
    lake.model("merged_near", config("merge", **near) + changed)
    lake.model("swapped_near", config("delete+insert", **near) + changed)
    lake.model("swapped", config("delete+insert", unique_key="'buyer'") + f"select buyer, id from @orders {LATE}")
    lake.model("parts", config("insert_overwrite", partition_by="'ym'") + f"select id, ym from @orders {LATE}")
    lake.model("whole", config("insert_overwrite") + f"select id from @orders {LATE}")
    lake.model("above", "select ym, count(*) as n, sum(amount) as total from {{ ref('merged') }} group by ym")
    assert set(lake.run_well().values()) == {"full_refresh"}
    assert set(lake.run_well().values()) == {"no_op"}  # where nothing moved nothing is added a second time
    moved = (4, 0, D(4), "Oslo", "m0")
    orders.upsert((1, 1, D(10), "Rome", "m1"), (4, 0, D(40), "Rome", "m1"), (6, 0, D(6), "Rome", "m0"), delete=[moved])
    assert lake.run_well() == {
        "added": "append", "copied": "append", "merged": "merge", "swapped": "delete+insert",
        "parts": "insert_overwrite", "whole": "insert_overwrite", "above": "aggregate_merge",
        "merged_near": "merge", "swapped_near": "delete+insert",
    }  # fmt: skip
    for name in (
        "merged_near",
        "swapped_near",
    ):  # as in dbt: the predicates hide the stored 1, so that it is there twice
        assert lake.rows(name) == [(1, D(1)), (1, D(10)), (2, D(2)), (3, D(3)), (4, D(40))]
    assert {reason.rule for reason in lake.results["added"].reasons} == {"CFG005"}
    ids = [row[0] for row in lake.rows("added")]
    assert ids == [1, 2, 3, 4, 6] and lake.rows("added")[0] == (1, D(1))  # a watermark does not see that 1 changed
    assert [row[0] for row in lake.rows("copied")] == ["Oslo"] * 5 + ["Rome"] * 2  # equal rows are rows of their own
    assert lake.rows("merged") == [
        (1, D(1), "Oslo", "m1"), (2, D(2), "Oslo", "m0"), (3, D(3), "Oslo", "m1"), (4, D(40), "Oslo", "m1"),
        (6, D(6), "Rome", "m0"),
    ]  # fmt: skip
    assert len(set(lake.keys("merged"))) == 5  # 4 moved to another partition, and is there once
    assert lake.rows("above") == [("m0", 2, D(8)), ("m1", 3, D(44))]
    assert lake.rows("swapped") == [(0, 2), (0, 4), (0, 6), (1, 1), (1, 3)]
    # 4 left m0 in the source; m1 is overwritten by the one row that falls into it.
    assert lake.rows("parts") == [(2, "m0"), (4, "m1"), (6, "m0")]
    assert lake.rows("whole") == [(2,), (4,), (6,)]
    planner = lake.planner()
    lost = lake.engine().verify(planner.plan(planner.rendered.model("model.shop.added"), {}, whole=True), 10)
    rows = sorted((sign, row["id"], row["amount"]) for sign, row in lost.rows)
    assert rows == [(-1, 1, D(1)), (-1, 4, D(4)), (1, 1, D(10)), (1, 4, D(40))]
    assert lake.run("parts", full_refresh=True)["parts"].strategy == "full_refresh"
    assert [row[0] for row in lake.rows("parts")] == [1, 2, 3, 4, 6]


@pytest.mark.release
def test_columns_come_and_go_as_the_author_asks(lake: Lake, orders: Table) -> None:
    query = f"select id, COLUMNS from @orders {NEW}"
    lake.model("grows", config("append", on_schema_change="'append_new_columns'") + query.replace("COLUMNS", "amount"))
    lake.model("stays", config("append") + query.replace("COLUMNS", "amount"))
    lake.model("fails", config("append", on_schema_change="'fail'") + query.replace("COLUMNS", "amount"))
    lake.model("turned", config("merge", unique_key="'id'") + query.replace("COLUMNS", "amount"))
    lake.run_well()
    orders.upsert((5, 1, D(5), "Rome", "m1"))
    lake.model("grows", config("append", on_schema_change="'append_new_columns'") + query.replace("COLUMNS", "city"))
    lake.model("stays", config("append") + query.replace("COLUMNS", "amount, city"))
    lake.model("fails", config("append", on_schema_change="'fail'") + query.replace("COLUMNS", "amount, city"))
    lake.model("turned", config("merge", unique_key="'id'") + query.replace("COLUMNS", "'x' as amount"))
    results = lake.run()
    assert {name: result.status for name, result in results.items()} == {
        "grows": "success", "stays": "success", "fails": "error", "turned": "error",
    }  # fmt: skip
    assert lake.rows("grows")[-2:] == [(4, D(4), None), (5, None, "Rome")]
    assert lake.rows("stays")[-1] == (5, D(5))
    assert "has a column 'city', which the table has not" in results["fails"].message
    assert "'amount' is decimal(12,2) in the table and string in the query" in results["turned"].message
    assert lake.rows("fails") == lake.rows("turned")  # both are as they were
