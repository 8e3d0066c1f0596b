"""Whole runs: failures, threads, lost history, foreign tables, and that incremental means incremental."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Literal
from unittest import mock

import pytest

from sqlmesh_like.app.operations.run_results import response
from sqlmesh_like.plan import model_plan
from sqlmesh_like.run.result import ModelResult
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.jvm import job_metrics
from sqlmesh_like.spark.program import spark_steps
from tests.spark.lake import CLEAN_OLD_VERSIONS, ORDERS, Lake, Table, archiving
from tests.spoilt_files import poison, poison_rows

D = Decimal
_PATIENCE_MS = 120_000


@pytest.fixture
def orders(lake: Lake) -> Table:
    table = lake.source("orders", ORDERS, partition="ym")
    table.upsert(*[(i, i % 3, D(i), f"c{i % 2}", f"m{i % 3}") for i in range(12)])
    return table


@pytest.mark.checklist(41, 58, 60, 61)
def test_an_incremental_run_reads_nothing_of_untouched_partitions(lake: Lake, orders: Table) -> None:
    lake.model("flat", "{{ config(partition_by='ym') }} select id, ym, amount from @orders")
    lake.model(
        "months",
        "{{ config(partition_by='ym') }} select ym, sum(amount) as total, max(amount) as hi from @orders group by ym",
    )
    lake.model(
        "buyers", "{{ config(partition_by='ym') }} select ym, count(distinct buyer) as n from @orders group by ym"
    )
    lake.model("cities", "select ym, city, count(distinct buyer) as n from @orders group by ym, city")
    lake.source("places", "id string, name string").upsert(("c0", "Oslo"), ("c9", "Rome"))
    join = "select o.id, o.ym, p.name from @orders o join @places p on o.city = p.id"
    lake.model("named", "{{ config(partition_by='ym') }} " + join)  # places have not moved: all of orders is not read
    lake.run_well()
    orders.upsert((1, 7, D("0.50"), "c9", "m1"), delete=[(10, 1, D(10), "c0", "m1")])  # m1 loses its maximum
    for uri in (orders.uri, *map(lake.uri, ("flat", "months", "buyers", "named"))):
        assert poison(uri, lambda path: path.split("/")[0].endswith("=m1")) >= 2
    assert lake.run_well() == {
        "flat": "row_based", "months": "aggregate_merge", "buyers": "partition_rescan", "cities": "group_recompute",
        "named": "row_based",
    }  # fmt: skip
    files = [f for f in lake.timeline("months").data_files if f.startswith("_sml_partition=m1/")]
    newest = max(files, key=lambda path: path.rsplit("_", 1)[1])
    stored = lake.spark.read.parquet(f"{lake.uri('months')}/{newest}")
    assert [tuple(row) for row in stored.select("ym", "total", "hi").collect()] == [("m1", D("11.50"), D("7.00"))]
    refreshed = lake.run(full_refresh=True)
    assert {result.status for result in refreshed.values()} == {"error"}
    assert all("not a Parquet file" in result.message for result in refreshed.values()), refreshed["flat"].message


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_a_lookup_reads_no_rows_of_files_whose_keys_are_out_of_range(
    lake: Lake, engine: Literal["auto", "spark"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_plan, "SMALL_INPUT", 0)  # which would be read whole
    monkeypatch.setattr(spark_steps, "WORTH_A_RANGE", 0)  # which Spark would not find out the range of keys for
    lake.use_engine(engine)
    orders = lake.source("orders", ORDERS, partition="ym")  # months are no keys of the join, but have ids of their own
    orders.upsert(*[(i, i % 3, D(i), "c", f"m{i // 10}") for i in range(40)])
    lines = lake.source("lines", "id int, order_id int, price int")
    lines.upsert(*[(i, i, 100) for i in range(40)])
    lake.model("sold", "select l.id, o.buyer, o.amount, l.price from @lines l join @orders o on l.order_id = o.id")
    lake.run_well()
    lines.upsert((41, 35, 7), (36, 36, 8), delete=[(37, 37, 100)])
    assert poison_rows(orders.uri, lambda path: path.startswith("ym=m3/")) == 3
    assert lake.run_well() == {"sold": "row_based"}
    assert lake.results["sold"].engine == {"auto": "duckdb", "spark": "spark"}[engine]
    rows = [row for row in lake.rows("sold") if int(str(row[0])) > 34]
    assert rows == [(35, 2, D(35), 100), (36, 0, D(36), 8), (38, 2, D(38), 100), (39, 0, D(39), 100), (41, 2, D(35), 7)]
    assert len(lake.rows("sold")) == 40
    refreshed = lake.run(full_refresh=True)["sold"]
    assert refreshed.status == "error", "the rows are unreadable indeed"


def test_a_failing_model_skips_its_descendants_and_the_others_go_on(lake: Lake, orders: Table) -> None:
    lake.model("bad", "{{ config(unique_key='buyer') }} select id, buyer, amount from @orders")
    lake.model("child", "select count(*) as n from {{ ref('bad') }}")
    lake.model("grandchild", "select n + 1 as m from {{ ref('child') }}")
    lake.model("well", "select count(*) as n from @orders")
    results = lake.run()
    assert {name: result.status for name, result in results.items()} == {
        "bad": "error", "child": "skipped", "grandchild": "skipped", "well": "success",
    }  # fmt: skip
    assert "model.shop.bad" in results["child"].message
    assert not lake.timeline("bad").exists


def test_fail_fast_skips_what_has_not_started(lake: Lake, orders: Table) -> None:
    lake.model("a_bad", "{{ config(unique_key='buyer') }} select id, buyer from @orders")
    lake.model("b_well", "select count(*) as n from @orders")
    results = lake.run(threads=1, fail_fast=True)
    assert {name: result.status for name, result in results.items()} == {"a_bad": "error", "b_well": "skipped"}
    assert "fail-fast" in results["b_well"].message


def test_a_missing_input_is_an_error_with_what_to_do(lake: Lake) -> None:
    lake.source("nowhere", "id int")
    lake.model("m", "select id from @nowhere")
    failed = lake.run()["m"]
    assert failed.status == "error"
    assert "does not exist" in failed.message
    assert "sml ingest" in failed.message


def newest_job(lake: Lake) -> int:
    """The last job that has begun; Spark's listeners hear of it later than who began it."""
    lake.spark._jsc.sc().listenerBus().waitUntilEmpty(_PATIENCE_MS)  # type: ignore[attr-defined]
    return max(lake.spark.sparkContext.statusTracker().getJobIdsForGroup(None))


def assert_all_jobs_are_told(lake: Lake, results: Mapping[str, ModelResult], before: int) -> None:
    """Each Spark job since `before` is one model's, and every model says what it read and shuffled."""
    responses = [response(result) for result in results.values()]
    assert sum(int(str(each["spark_jobs"])) for each in responses) == newest_job(lake) - before
    for each in responses:
        assert int(str(each["spark_stages"])) >= int(str(each["spark_jobs"])) > 0, each
        assert int(str(each["spark_bytes_read"])) > 0, each
        assert int(str(each["spark_bytes_shuffled"])) > 0, each


@pytest.mark.release
def test_independent_models_side_by_side_are_all_right(
    lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_metrics, "_LONGEST_WAIT", _PATIENCE_MS)
    lake.use_engine("spark")
    lake.spark.catalog.clearCache()
    for number in range(6):
        columns = f"city, sum(amount + {number}) as total, count(*) as n"
        lake.model(f"m{number}", f"select {columns} from @orders group by city")
    before = newest_job(lake)
    assert_all_jobs_are_told(lake, lake.run(threads=4), before)
    orders.upsert((0, 1, D(99), "c1", "m0"), (50, 1, D(1), None, "m5"), delete=[(1, 1, D(1), "c1", "m1")])
    with mock.patch.object(CopyOnWriteFeed, "changes", autospec=True, side_effect=CopyOnWriteFeed.changes) as read:
        before = newest_job(lake)
        assert set(lake.run_well(threads=4).values()) == {"aggregate_merge"}
        assert_all_jobs_are_told(lake, lake.results, before)
    assert read.call_count == 1, "the change of an input is read once a run"
    assert lake.spark._jsparkSession.sharedState().cacheManager().isEmpty(), "what was kept for the run is released"
    for number in range(6):
        rows = lake.rows(f"m{number}")
        assert len(rows) == 3
        assert sum(int(str(row[2])) for row in rows) == 12
    lake.assert_maintained("m0", "m5")


def test_history_that_was_cleaned_means_a_comparison_with_the_reason(lake: Lake, orders: Table) -> None:
    lake.model("flat", "select id, amount from @orders")
    lake.model("strict", "{{ config(refresh='strict') }} select id, amount from @orders")
    lake.run_well()
    orders.upsert((0, 0, D(50), "c0", "m0"), delete=[(3, 0, D(3), "c1", "m0")])
    orders.upsert((0, 0, D(51), "c0", "m0"), **CLEAN_OLD_VERSIONS)
    results = lake.run()
    assert results["flat"].strategy == "recompute_merge"
    assert {"HIS003", "EDT001"} <= lake.rules("flat")
    assert "cleaned" in next(reason.message for reason in results["flat"].reasons if reason.rule == "HIS003")
    lake.assert_maintained("flat")
    assert results["strict"].status == "error"
    assert "HIS003" in results["strict"].message
    assert len(lake.rows("strict")) == 12


@pytest.mark.release
def test_archived_history_means_a_comparison_with_the_reason(lake: Lake, orders: Table) -> None:
    lake.model("agg", "select city, count(*) as n from @orders group by city")
    lake.run_well()
    for number in range(5):
        orders.upsert((0, number, D(50), f"c{number}", "m0"))
    orders.upsert((0, 0, D(50), "last", "m0"), **archiving(2))
    assert lake.run_well() == {"agg": "recompute_merge"}
    assert "HIS003" in lake.rules("agg")
    lake.assert_maintained()
    orders.upsert((0, 0, D(50), "really last", "m0"))
    assert lake.run_well() == {"agg": "aggregate_merge"}
    lake.assert_maintained()


def test_an_input_that_was_deleted_and_made_anew_is_compared_as_a_whole(lake: Lake, orders: Table) -> None:
    lake.model("flat", "select id, amount from @orders")
    lake.run_well()
    Path(orders.uri).rename(Path(orders.uri).with_name("elsewhere"))
    orders.upsert((1, 1, D(1), "x", "m1"))
    assert lake.run_well() == {"flat": "recompute_merge"}
    assert "HIS003" in lake.rules("flat")
    assert lake.rows("flat") == [(1, D("1.00"))]


@pytest.mark.checklist(46)
def test_a_table_of_another_writer_is_followed(lake: Lake) -> None:
    """Hudi's defaults: paths without names, a composite key, the metadata table on, cleaning at each commit."""
    uri = str(lake.root / "elsewhere" / "events")
    options = {
        "hoodie.table.name": "events",
        "hoodie.datasource.write.recordkey.field": "shop,id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "region,day",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }

    def commit(*rows: tuple[object, ...], operation: str = "upsert") -> None:
        frame = lake.spark.createDataFrame(rows, "shop string, id int, ts bigint, region string, day date, v int")
        writer = frame.write.format("hudi").options(**options)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(uri)

    lake.declare("events", uri)
    lake.model("flat", "select shop, id, region, v from @events")
    lake.model("days", "select day, region, sum(v) as v, max(v) as hi, count(*) as n from @events group by day, region")
    day, other = date(2024, 1, 2), date(1969, 12, 31)
    commit(("s", 1, 1, "eu", day, 10), ("s", 2, 1, "eu", day, 20), ("t", 1, 5, "us", other, 30))
    lake.run_well()
    commit(("s", 1, 2, "eu", day, 11), ("t", 1, 4, "us", other, 99), ("u", 1, 1, "", other, 7))
    commit(("s", 2, 9, "eu", day, 20), operation="delete")
    assert lake.run_well() == {"flat": "row_based", "days": "aggregate_merge"}
    lake.assert_maintained()
    assert [row[:2] + row[3:] for row in lake.rows("flat")] == [("s", 1, 11), ("t", 1, 30), ("u", 1, 7)]


@pytest.mark.release
@pytest.mark.checklist(18)
def test_a_table_whose_keys_repeat_is_kept_right(lake: Lake) -> None:
    """Plain inserts may repeat a record key: two rows, and one of them may go."""
    uri = str(lake.root / "elsewhere" / "log")
    options = {
        "hoodie.table.name": "log",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.merge.allow.duplicate.on.inserts": "true",
        "hoodie.index.type": "SIMPLE",
        "hoodie.metadata.enable": "false",
    }

    def commit(*rows: tuple[object, ...]) -> None:
        frame = lake.spark.createDataFrame(rows, "id int, v int")
        writer = frame.write.format("hudi").options(**options)
        writer.option("hoodie.datasource.write.operation", "insert").mode("append").save(uri)

    lake.declare("log", uri)
    lake.model("flat", "select id, v from @log")
    lake.model("agg", "select id, sum(v) as v from @log group by id")
    commit((1, 10))
    lake.run_well()
    commit((1, 11), (2, 5))
    lake.run_well()
    lake.assert_maintained()
    commit((1, 11), (3, 6))
    lake.run_well()
    lake.assert_maintained()
    assert lake.rows("flat") == [(1, 10), (1, 11), (1, 11), (2, 5), (3, 6)]
    assert lake.rows("agg") == [(1, 32), (2, 5), (3, 6)]
