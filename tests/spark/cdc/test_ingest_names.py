"""Names of columns, tables and folders in any alphabet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.project.nodes import PartitionBy
from tests.spark.ingest_lake import Lake, event, report_of, table

pytestmark = pytest.mark.release

THAI, HINDI = "ช_x0E37__x0E48_อ", "न_x093E_म"


@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_columns_of_any_alphabet_stay_columns_of_their_own(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    declared = table(
        "员工",
        table="员工",
        primary_key=("编号",),
        order_by=("顺序",),
        partition_by=PartitionBy("部门", None, "分区"),
        table_type=table_type,
        columns={"顺序": "bigint"},
    )
    lake = Lake(spark, tmp_path, (declared,))
    names = ("编号", "顺序", "部门", "姓名", "имя", "größe", "이름", "ชื่อ", "नाम", "价格（元）", "价格【元】")

    def row(*values: object) -> dict[str, object]:
        return dict(zip(names, values, strict=False))

    first, second = row(1, 1, "财务", "张三", "a", 1.5, "b", "c", "d", 1, 2), row(2, 1, "人事", "李四")
    report = lake.ingest(event("c", first, table="员工"), event("c", second, table="员工"))
    assert (report.dead_letters, report_of(report, "员工").upserts) == (0, 2)
    moved = {**first, "顺序": 2, "部门": "人事", "новый": True}
    report = lake.ingest(event("u", moved, first, table="员工"), event("d", None, second, table="员工"))
    assert report.dead_letters == 0
    stored = ("编号", "部门", "姓名", "имя", "größe", "이름", THAI, HINDI, "价格_xFF08_元_xFF09_", "новый")
    quoted = [f"`{name}`" for name in (*stored, "价格_x3010_元_x3011_")]
    assert lake.rows("员工", *quoted) == [(1, "人事", "张三", "a", 1.5, "b", "c", "d", 1, True, 2)]
    lake.ingest(event("u", {**moved, "顺序": 3, "姓名": "王五"}, moved, table="员工"))
    assert lake.rows("员工", "`编号`", "`姓名`") == [(1, "王五")]
