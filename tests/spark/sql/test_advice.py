"""Queries in the form that a plan advises have in Spark the rows of the form that they were written in."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from tests.properties.lake import compiled
from tests.properties.test_hints import COLUMNS, TRIED, rewritten

_TEXTS = ("1", " 1", "1.0", "1e0", "x", "", "2147483648", None, "2024-01-01", "2024-1-1", "2024-01-01 00:00:00")


@pytest.mark.release
def test_advised_joins_and_sets_have_the_same_rows(spark: SparkSession) -> None:
    schema = ", ".join(f"{column.name} {column.type}" for column in COLUMNS)
    rows = [
        (n % 3, Decimal(n % 3), text, None, n % 2 == 0, float(n), [n], text, None, text)
        for n, text in enumerate(_TEXTS)
    ]
    frame = spark.createDataFrame(rows, schema).withColumn("dt", expr("if(a = 0, date '2024-01-01', null)"))
    for name in "tu":
        frame.createOrReplaceTempView(name)
    cases = [case for case in TRIED if case.rule in ("JOI003", "AGG006")]
    assert len(cases) == 4
    for case in cases:
        model = compiled(case.sql, COLUMNS, case.by)
        after = next(new for advice, new in rewritten(model, case.rule) if case.hint.startswith(advice))
        before, advised = (spark.sql(sql.replace("ods.", "")).collect() for sql in (case.sql, after.facts.model.sql))
        assert sorted(before, key=str) == sorted(advised, key=str) and before, case.sql
