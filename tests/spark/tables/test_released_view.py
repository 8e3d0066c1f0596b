"""Spark reads tables as of a commit by the statements of `sml ddl --release`, partition values as files have them."""

from __future__ import annotations

from typing import Literal

from pyspark.sql import SparkSession

from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.reading.released_view import spark_view
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.names import TableName
from tests.levels import parametrize
from tests.spark.lake import COMPACT, Lake, ordered


@parametrize("kind", suite=["cow"], release=["mor"])
def test_spark_reads_a_table_as_of_each_commit(kind: Literal["cow", "mor"], lake: Lake, spark: SparkSession) -> None:
    table = lake.source("t", "id int, v string, p string", partition="p", table_type=kind)
    rows = {(1, "a", "01"), (2, "b", "x%20y"), (3, "c", "ü"), (4, "d", "")}
    commits = {table.upsert(*rows): rows}
    later = rows - {(2, "b", "x%20y"), (1, "a", "01")} | {(5, "e", "01"), (1, "z", "01")}
    commits[table.upsert((1, "z", "01"), (5, "e", "01"), delete=[(2, "b", "x%20y")])] = later
    options = COMPACT if kind == "mor" else {}
    commits[table.upsert((6, "f", "01"), **options)] = later | {(6, "f", "01")}
    now = LakeHistory().state(table.uri)
    for frontier, expected in commits.items():
        for statement in spark_view(TableName("ods", "t"), state_at(now, frontier)):
            spark.sql(statement)
        shown = spark.sql("select * from global_temp.ods__t")
        assert shown.columns == ["id", "v", "p"]
        assert ordered(shown) == sorted(expected, key=repr)
