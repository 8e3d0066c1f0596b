"""Rows of Spark in Python: the same on machines of any time zone; and tables with maps are compared as all others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.spark.frames.comparison import difference
from sqlmesh_like.spark.frames.python_rows import python_rows

pytestmark = pytest.mark.release


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's clock is in New York, where 06:30 UTC and 05:30 UTC of that day are both 01:30."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


def test_times_are_in_utc_whatever_the_time_zone_of_the_machine(spark: SparkSession, new_york: None) -> None:
    first, second = datetime(2024, 11, 3, 5, 30, 0, 123456), datetime(2024, 11, 3, 6, 30)
    one, other = (f"timestamp '{moment}'" for moment in (first, second))
    frame = spark.sql(
        f"select {one} as t, {other} as t, array({other}, null) as a, map({one}, {other}) as m,"
        f" named_struct('x', array({one})) as s, date '2024-11-03' as d, timestamp '0001-01-01' as least"
    )
    ((*times, struct, day, least),) = python_rows(frame)
    assert times == [first, second, [second, None], {first: second}]
    assert struct.asDict() == {"x": [first]} and str(day) == "2024-11-03" and least == datetime(1, 1, 1)


@pytest.mark.parametrize("inexact", [[], None])
def test_tables_with_maps_are_compared_by_their_entries(spark: SparkSession, inexact: list[str] | None) -> None:
    text = (
        "select 1 as id, map('a', 1D, 'b', cast('nan' as double)) as m,"
        " array(named_struct('x', map(1, map('k', 2)))) as a"
        " union all select 2, null, null union all select 3, map('a', {}), array(named_struct('x', null), null)"
    )
    turned = text.replace("'a', 1D, 'b', cast('nan' as double)", "'b', cast('nan' as double), 'a', 1D")
    assert difference(spark.sql(text.format("0D")), spark.sql(turned.format("-0D")), 5, inexact).total == 0
    found = difference(spark.sql(text.format("0D")), spark.sql(text.format("null")), 5, inexact)
    assert found.total == 2
    assert [(sign, row["m"], row["a"]) for sign, row in found.rows] == [
        (-1, {"a": 0.0}, [{"x": None}, None]), (1, {"a": None}, [{"x": None}, None]),
    ]  # fmt: skip
