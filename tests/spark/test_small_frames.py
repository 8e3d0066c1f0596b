"""What is done to frames, on a few rows that need no table: types that grow, samples that are compared, two texts."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.run.close_rows import RELATIVE_TOLERANCE
from sqlmesh_like.run.ports import Sample
from sqlmesh_like.spark.frames.comparison import sampled_difference
from sqlmesh_like.spark.frames.type_promotion import promoted_type
from sqlmesh_like.spark.program.query_plans import other_meaning

OLD = (
    "named_struct('A', 1, 'b', 0.1F) as s, array(named_struct('x', 1), null) as l, map('k', 0.1F) as m, 7 as n,"
    " cast(null as struct<A: int, b: float>) as gone"
)
WANTED = {
    "s": "struct<a: bigint, b: double, c: string>", "l": "array<struct<x: bigint, y: int>>", "m": "map<string, double>",
    "N": "decimal(10,2)", "gone": "struct<a: bigint, b: double, c: string>", "added": "date",
}  # fmt: skip


def test_a_column_of_an_older_schema_gets_the_type_of_the_newer_one(spark: SparkSession) -> None:
    wanted = spark.sql(
        f"select {', '.join(f'cast(null as {type_}) as {name}' for name, type_ in WANTED.items())}"
    ).schema
    frame = spark.sql(f"select {OLD}")
    row = frame.select(*[promoted_type(frame, field.name, field.dataType) for field in wanted]).collect()[0]
    assert row["s"].asDict() == {"a": 1, "b": 0.1, "c": None}, "a float through its text, as Hudi does"
    assert [None if each is None else each.asDict() for each in row["l"]] == [{"x": 1, "y": None}, None]
    assert (row["m"], row["N"], row["gone"], row["added"]) == ({"k": 0.1}, Decimal("7.00"), None, None)


def test_a_sample_is_compared_by_keys_and_again_by_the_same_ones(spark: SparkSession) -> None:
    stored = spark.range(40).selectExpr("id", "id * 1.5D as x")
    expected = spark.range(41).selectExpr("id", "if(id = 39, 0D, id * 1.5D * (1 + 1e-13D)) as x")
    whole = sampled_difference(stored, expected, ["id"], Sample(1000, 7), 9, ["x"], RELATIVE_TOLERANCE)
    assert whole.keys is not None and (whole.keys.count, whole.keys.is_all) == (40, True)
    assert sorted((sign, row["id"]) for sign, row in whole.rows) == [(-1, 39), (1, 39), (1, 40)]
    part = sampled_difference(stored, expected, ["id"], Sample(10, 7), 9, ["x"], RELATIVE_TOLERANCE)
    assert part.keys is not None and (part.keys.count, part.keys.is_all) == (10, False) and part.total < 4
    again = sampled_difference(stored, expected, ["id"], Sample(10, 7, part.keys.up_to), 9, ["x"], RELATIVE_TOLERANCE)
    assert (again.keys, again.total) == (part.keys, part.total)
    other = sampled_difference(stored, expected, [], Sample(10, 7), 1, ["x"], RELATIVE_TOLERANCE)
    assert (other.total, len(other.rows)) == (3, 1)


@pytest.mark.parametrize(
    ("written", "compiled", "says"),
    [
        ("select id + 1 as a from v", "with c as (select id from v) select id + 1 as a from c", None),
        ("select id as a from v", "select cast(id as int) as a from v", "a bigint, not a int"),
        ("select id as a from v where id > 1", "select id as a from v where id > 2", "> 2"),
    ],
)
def test_two_texts_of_a_query_are_told_apart(
    spark: SparkSession, written: str, compiled: str, says: str | None
) -> None:
    spark.range(5).createOrReplaceTempView("v")
    meaning = other_meaning(spark.sql(written), spark.sql(compiled))
    assert meaning is None if says is None else says in (meaning or "")
