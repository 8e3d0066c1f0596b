"""Aggregates of which counts, the whole group or the row key decide the result, on real tables."""

from __future__ import annotations

from datetime import date

import pytest

from tests.spark.lake import Lake

MERGED = "bool_and(b) as m1, every(b) filter (where v > 0) as m2, any(b) as m3, count_if(v > 1) as m4"
CHOSEN = (
    "max_by(v, d) as t1, min_by(v, d) filter (where b) as t2, first(v) as t3, last(v, true) as t4, any_value(d) as t5, "
    "first_value(f) as t6, max_by(struct(v, d), v) as t7, max(d) as t8"
)
TIED = "collect_list(v) as t1, collect_set(v) as t2, collect_list(d) filter (where b) as t3, max_by(v, f) as t4"
WHOLE = (
    "percentile(v, 0.5) as w1, percentile_cont(0.5) within group (order by v) as w2, median(v) as w3, std(f) as w4, "
    "var_pop(v) as w5, corr(v, f) as w6, covar_samp(v, f) as w7, skewness(f) as w8, kurtosis(f) as w9, "
    "bit_and(v) as x1, bit_or(v) as x2, bit_xor(v) as x3, approx_count_distinct(v) as x4, sum(distinct v) as x5, "
    "avg(distinct v) as x6, regr_slope(v, f) as x7, mean(f) as x8"
)


@pytest.mark.release
def test_functions_of_groups_follow_their_input(lake: Lake) -> None:
    table = lake.source("t", "id int, g string, v int, b boolean, d date, f double")
    for name, calls in (("merged", MERGED), ("chosen", CHOSEN), ("tied", TIED), ("whole", WHOLE)):
        lake.model(name, f"select g, {calls} from @t group by g")
    day = date(2024, 1, 1)
    table.upsert(
        (1, "x", 1, True, day, 0.5), (2, "x", 2, False, None, 1.5), (3, "y", None, None, None, None),
        (4, None, 2, True, day, 2.0), (5, "x", 3, True, day, 4.0),
    )  # fmt: skip
    assert set(lake.run_well().values()) == {"full_refresh"}
    assert not any("TYP003" in lake.rules(name) for name in ("merged", "chosen", "tied", "whole"))
    lake.assert_maintained()
    table.upsert((2, "y", 2, None, day, 1.5), (6, "y", 7, True, day, 2.5), delete=[(1, "x", 1, True, day, 0.5)])
    merged, recomputed = ("aggregate_merge", "group_recompute")
    assert lake.run_well() == {"merged": merged, "chosen": merged, "tied": recomputed, "whole": recomputed}
    lake.assert_maintained()
    assert [row[:5] for row in lake.rows("chosen")] == [
        ("x", 3, 3, 3, 3), ("y", 7, 7, 2, 7), (None, 2, 2, 2, 2),
    ]  # fmt: skip
    assert lake.rows("merged") == [("x", True, True, True, 1), ("y", True, True, True, 2), (None, True, True, True, 1)]
