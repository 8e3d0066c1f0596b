"""`verify` knows nothing of how a table was maintained: what does not equal its query is found and printed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from tests.spark.lake import ORDERS, Lake, Table

D = Decimal


@pytest.fixture
def orders(lake: Lake) -> Table:
    table = lake.source("orders", ORDERS, partition="ym")
    table.upsert((1, 1, D("5.00"), "x", "m1"), (2, 2, D("6.00"), "y", "m2"), (3, 2, D("1.00"), "y", "m2"))
    lake.model("agg", "select city, sum(amount) as total from @orders group by city")
    return table


def alter(lake: Lake, name: str, *, delete: bool = False) -> None:
    """A write by somebody else, past this project: no record in its commit."""
    stored = lake.spark.read.format("hudi").load(lake.uri(name))
    stored = stored.drop(*[c for c in stored.columns if c.startswith("_hoodie_") and c != IS_DELETED])
    altered = stored.where("city = 'y'").withColumn("total", F.lit("666.00").cast("decimal(22,2)"))
    frame = altered.withColumn(IS_DELETED, F.lit(delete)).localCheckpoint()
    hudi_table.write(frame, HudiTable(lake.uri(name), f"dws_{name}", (KEY,)), "upsert", {})


@pytest.mark.checklist(75)
def test_a_row_altered_by_raw_hudi_is_found_printed_and_rebuilt(lake: Lake, orders: Table) -> None:
    lake.run_well()
    lake.assert_maintained()
    alter(lake, "agg")
    mismatch = lake.verify("agg")
    assert mismatch.total == 2
    assert [(sign, dict(row)) for sign, row in mismatch.rows] == [
        (-1, {"city": "y", "total": D("666.00")}),
        (1, {"city": "y", "total": D("7.00")}),
    ]
    assert lake.run_well() == {"agg": "full_refresh"}
    assert "HIS004" in lake.rules("agg")
    lake.assert_maintained()
    assert lake.run_well() == {"agg": "no_op"}


def test_a_row_deleted_by_raw_hudi_is_found(lake: Lake, orders: Table) -> None:
    lake.run_well()
    alter(lake, "agg", delete=True)
    assert [(sign, dict(row)) for sign, row in lake.verify("agg").rows] == [(1, {"city": "y", "total": D("7.00")})]


def test_a_table_is_compared_at_its_own_frontier_and_clock(lake: Lake, orders: Table) -> None:
    lake.model("stamped", "select id, current_timestamp() as at from @orders")
    lake.model(
        "ranked",
        "{{ config(partition_by='ym') }} select id, ym, row_number() over (partition by ym order by buyer) as place "
        "from @orders",
    )
    lake.run_well()
    orders.upsert((9, 9, D("9.00"), "new", "m2"), delete=[(1, 1, D("5.00"), "x", "m1")])
    lake.assert_maintained()
    lake.run_well()
    lake.assert_maintained()


def test_a_run_that_commits_in_between_is_not_a_difference(lake: Lake, orders: Table) -> None:
    lake.run_well()
    planned = lake.plan("agg")
    orders.upsert((9, 9, D("9.00"), "new", "m2"), delete=[(1, 1, D("5.00"), "x", "m1")])
    lake.run_well()
    assert lake.engine().verify(planned, 10).total == 0


def test_a_table_that_was_never_run_cannot_be_compared(lake: Lake, orders: Table) -> None:
    with pytest.raises(NodeError, match="not written by a run"):
        lake.verify("agg")


def test_doubles_compare_at_a_tolerance_and_everything_else_exactly(lake: Lake) -> None:
    table = lake.source("floats", "id int, x double, g string")
    table.upsert(*[(i, 0.1 * i, "g") for i in range(50)])
    lake.model("f", "select g, sum(x) as total, avg(x) as mean from @floats group by g")
    lake.run_well()
    lake.assert_maintained()
