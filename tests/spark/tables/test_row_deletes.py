"""Rows that a merge-on-read table is to lose, by many keys at once."""

from __future__ import annotations

from pyspark.sql import SparkSession

from sqlmesh_like.spark.writer.row_deletes import _matching


def test_thousands_of_keys_are_matched(spark: SparkSession) -> None:
    rows = spark.range(10).selectExpr("id as k", "cast(id % 3 as string) as p")
    assert _matching(rows, ["K"], [(str(number),) for number in range(5, 5000)]).count() == 5
    keys = [(str(number), str(number % 2)) for number in range(1500)]
    assert sorted(row["k"] for row in _matching(rows, ["k", "p"], keys).collect()) == [0, 1, 6, 7]
