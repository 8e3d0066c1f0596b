"""The derived plan of many functions gives what Spark gives for the query as written, and its types."""

from __future__ import annotations

from datetime import date, datetime

from tests.spark.lake import Lake
from tests.unit.analyze.test_deterministic_functions import PURE


def test_pure_functions_have_the_types_and_values_of_the_query_as_written(lake: Lake) -> None:
    table = lake.source("t", "id int, s string, v int, d date, at timestamp, arr array<int>")
    items = [f"{expression} as r{n}" for n, expression in enumerate(PURE)]
    lake.model("all_pure", f"select id, {', '.join(items)} from @t")
    row = (1, "a,b.c", 7, date(2024, 2, 29), datetime(2024, 2, 29, 13, 5), [3, 1, 7])
    table.upsert(row, (2, None, None, None, None, None))
    lake.run_well()
    assert lake.rules("all_pure") == {"HIS001"}
    table.upsert((2, '{"a": 3}', 2, date(2023, 1, 1), datetime(2023, 1, 1), []), delete=[row])
    assert lake.run_well() == {"all_pure": "row_based"}
    lake.assert_maintained()
    assert len(lake.rows("all_pure")) == 1
