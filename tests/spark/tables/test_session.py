"""The session that everything on Spark runs in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.project.reading.session_settings import FIXED

HUDI = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.metadata.enable": "false",
}


def write(spark: SparkSession, path: Path, rows: list[tuple[object, ...]]) -> None:
    frame = spark.createDataFrame(rows, "id int, name string, tags array<int>")
    frame.write.format("hudi").options(**HUDI).mode("append").save(str(path))


def test_the_fixed_settings_hold_in_the_running_session(spark: SparkSession) -> None:
    conf = dict(spark.sparkContext.getConf().getAll())
    assert {name: conf.get(name) for name in FIXED} == dict(FIXED)


def test_a_hudi_table_round_trips_and_upserts(spark: SparkSession, warehouse: Path) -> None:
    write(spark, warehouse / "t", [(1, "ü '", [1, None]), (2, None, None)])
    write(spark, warehouse / "t", [(2, "b", [])])
    rows = spark.read.format("hudi").load(str(warehouse / "t")).select("id", "name", "tags").collect()
    assert sorted(map(tuple, rows)) == [(1, "ü '", [1, None]), (2, "b", [])]


def test_workers_run_on_the_interpreter_of_this_process(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable


def test_nothing_of_the_jvm_reaches_the_terminal(
    spark: SparkSession, warehouse: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(spark, warehouse / "t", [(1, "a", [1])])
    assert spark.sql("select assert_true(true)").count() == 1
    assert capfd.readouterr() == ("", "")
