"""The Python API on a lake: events in, models up to date, rows out, on the session that the caller has."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from demo.shop.log import land
from sqlmesh_like import Project
from tests.spark.demo_lake import DemoLake


def test_a_lake_is_kept_from_python(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as unused:
        DemoLake.of("shop", spark, tmp_path, unused)  # only its files: the session is given below
    land(tmp_path, "1-snapshot", "2-new-orders")
    with Project.load(tmp_path, spark=spark) as project:
        (report,) = project.ingest("shop")
        assert {str(table.table): table.upserts for table in report.tables}["ods.user"] == 2
        (waiting,) = project.plan("user_agg").models
        assert (waiting.strategy, waiting.next_run) == ("aggregate_merge", "full_refresh")  # dwd_user is not there yet
        built = project.run("+user_agg")
        assert {each.node.name: each.status for each in built.results} == {"dwd_user": "success", "user_agg": "success"}
        (planned,) = project.plan("user_agg").models
        assert (planned.strategy, planned.next_run) == ("aggregate_merge", "no_op")
        assert [each.status for each in project.run("+user_agg").results] == ["no-op", "no-op"]
        users = project.table("dws.user_agg").to_arrow().to_pylist()
        assert sorted((row["device_model"], row["num"]) for row in users) == [("dm-01", 1), ("dm-02", 1)]
        assert project.sql("select sum(num) as n from dws.user_agg").to_pylist() == [{"n": 2}]
        assert {each.status for each in project.verify("+user_agg")} == {"pass"}
        assert {each.status for each in project.test("user_agg", exclude="test_type:unit").results} == {"pass"}
    assert spark.sql("select 1").collect()[0][0] == 1, "the caller's session lives on"
