"""The queries of TPC-H and TPC-DS: how each is maintained stands in a page that a person can read."""

from __future__ import annotations

from functools import cache

from tests.levels import parametrize
from tests.tpc.plans import LEAST, page, plans_of
from tests.tpc.tables import FOLDER

QUERIES = {"h": 22, "ds": 103, "ds27": 32}
plans = cache(plans_of)


@parametrize("suite", suite=["h", "ds"], release=["ds27"])
def test_the_page_of_plans_is_what_the_compiler_decides(suite: str) -> None:
    stored = (FOLDER / suite / "plans.txt").read_text(encoding="utf-8")
    assert page(suite, plans(suite)) == stored, "look at the difference, then run `python -m tests.tpc.plans`"


@parametrize("suite", suite=["h", "ds"], release=["ds27"])
def test_no_fewer_queries_are_incremental_than_before(suite: str) -> None:
    incremental = [name for name, plan in plans(suite).items() if plan.strategy != "full_refresh"]
    assert len(incremental) >= LEAST[suite]
    assert len(plans(suite)) == QUERIES[suite]


@parametrize("suite", suite=["h", "ds"], release=["ds27"])
def test_a_full_refresh_says_why_and_where(suite: str) -> None:
    for name, plan in plans(suite).items():
        if plan.strategy == "full_refresh":
            assert plan.reasons and plan.reasons[0].line and plan.reasons[0].column, name
