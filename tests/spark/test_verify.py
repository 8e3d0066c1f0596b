"""`verify` knows nothing of how a table was maintained: what does not equal its query is found and printed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.duckdb.local_sample import local_difference
from sqlmesh_like.errors import NodeError
from sqlmesh_like.names import IS_DELETED, KEY
from sqlmesh_like.run.ports import Sample
from sqlmesh_like.spark.frames.comparison import difference
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


@pytest.mark.release
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


def test_many_doubles_are_matched_by_spark(spark: SparkSession) -> None:
    values = {0: "double('NaN')", 1: "double('inf')", 2: "cast(null as double)", 3: "1e-3D", 4: "double('NaN')"}
    apart = {0: "1D", 1: "1D", 2: "1D", 3: "1.001e-3D"}  # 4 is equal; 5 has two rows on one side; 6 is there once
    rows = spark.range(30_000).selectExpr(
        "if(id = 7, null, id) as id", f"{_chosen(values, '0.1D * id')} as x", "id % 3 as n"
    )
    stored = rows.unionByName(rows.where("id = 5"))
    expected = rows.where("not id <=> 6").withColumn("x", F.expr(f"{_chosen(apart, 'x')} * (1 + 1e-12D)"))
    expected = expected.withColumn("x", F.when(F.expr("id <=> 4"), F.expr("double('NaN')")).otherwise(F.col("x")))
    result = difference(stored, expected, 100)
    assert sorted({row["id"] for _, row in result.rows}) == [0, 1, 2, 3, 5, 6]
    # Few enough to be matched one by one: of the rows 5, one pair is close.
    assert result.total == 4 * 2 + 1 + 1


def _chosen(values: dict[int, str], otherwise: str) -> str:
    return f"case {' '.join(f'when id <=> {id} then {value}' for id, value in values.items())} else {otherwise} end"


def test_a_double_that_is_copied_compares_exactly(lake: Lake) -> None:
    """Milliseconds since 1970: 900 of them are less than a relative tolerance would notice."""
    table = lake.source("floats", "id int, x double, g string")
    table.upsert((1, 1706702400000.0, "g"))
    lake.model("f", "select id, x from @floats")
    lake.run_well()
    stored = lake.spark.read.format("hudi").load(lake.uri("f"))
    stored = stored.drop(*[c for c in stored.columns if c.startswith("_hoodie_") and c != IS_DELETED])
    altered = stored.withColumn("x", F.col("x") + 900).withColumn(IS_DELETED, F.lit(False)).localCheckpoint()
    hudi_table.write(altered, HudiTable(lake.uri("f"), "dws_f", (KEY,)), "upsert", {})
    assert lake.verify("f").total == 2


@pytest.mark.release
def test_a_sample_in_spark_notices_what_is_wrong_missing_or_superfluous(lake: Lake) -> None:
    """COLLECT_SET is not proven for DuckDB."""
    table = lake.source("orders", ORDERS)
    table.upsert(*[(n, n, D("1.00"), f"c{n:02d}", "m1") for n in range(30)])
    lake.model("agg", "select city, sum(amount) as total, collect_set(buyer) as buyers from @orders group by city")
    lake.run_well()
    assert local_difference(lake.plan("agg").as_recorded(), 10, Sample(5, 1)) is None
    assert differing(lake, 5, 1) == 0

    stored = lake.spark.read.format("hudi").load(lake.uri("agg"))
    stored = stored.drop(*[c for c in stored.columns if c.startswith("_hoodie_") and c != IS_DELETED]).localCheckpoint()
    wrong = stored.where("city = 'c03'").withColumn("total", F.lit("666.00").cast("decimal(22,2)"))
    superfluous = stored.where("city = 'c05'").withColumn("city", F.lit("zz")).withColumn(KEY, F.lit("2.zz"))
    entering = wrong.unionByName(superfluous).withColumn(IS_DELETED, F.lit("false").cast("boolean"))
    missing = stored.where("city = 'c04'").withColumn(IS_DELETED, F.lit("true").cast("boolean"))
    frame = entering.unionByName(missing).localCheckpoint()
    hudi_table.write(frame, HudiTable(lake.uri("agg"), "dws_agg", (KEY,)), "upsert", {})

    assert differing(lake, 100, 0) == 4
    by_seed = [differing(lake, 8, seed) for seed in range(5)]
    assert len(set(by_seed)) > 1 and by_seed[1] == differing(lake, 8, 1)


def differing(lake: Lake, keys: int, seed: int) -> int:
    """How many rows of `agg` differ among so many keys, by Spark."""
    result = lake.engine().verify(lake.plan("agg"), 10, Sample(keys, seed))
    assert result.keys is not None and result.keys.columns == ("city",) and result.keys.count == min(keys, 30)
    return result.total


def test_files_that_changed_since_the_last_run_are_not_taken_for_a_difference(lake: Lake) -> None:
    (lake.root / "codes").mkdir()
    (lake.root / "codes" / "1.csv").write_text("id\n1\n")
    lake.declare("codes", f"{lake.root}/codes', format: 'csv")
    lake.model("known", "select id from @codes")
    lake.run_well()
    lake.assert_maintained()
    (lake.root / "codes" / "2.csv").write_text("id\n2\n")
    with pytest.raises(NodeError, match="changed since its last run"):
        lake.verify("known")
