"""Joins, groups, windows and set operations over each other follow their inputs exactly, several inputs at once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.generate import DEEP, examples
from tests.properties.joined import CONSTRUCTS, compiled, follow, paths, queries

ENOUGH = 40 if DEEP else 2
"""Cases of each construct whose table changed; fewer than were tried, for a change need not reach the table."""


def test_nested_models_equal_a_recompute_after_every_batch_and_cover_every_construct() -> None:
    moved: Counter[str] = Counter()
    strategies: Counter[str] = Counter()
    for construct in CONSTRUCTS:
        _follow_some(construct, moved, strategies)
    lacking = {construct: moved[construct] for construct in CONSTRUCTS if moved[construct] < ENOUGH}
    assert not lacking, f"constructs with too few cases that changed the table: {lacking} of {moved}"
    assert strategies["full_refresh"] <= 0.4 * strategies.total(), strategies
    assert {"row_based", "aggregate_merge", "group_recompute", "partition_rescan"} <= set(strategies)


def _follow_some(construct: str, moved: Counter[str], strategies: Counter[str]) -> None:
    """Cases whose outermost operator has a construct."""

    @examples(0.7 / len(CONSTRUCTS))
    @given(data=st.data())
    def every_case(data: st.DataObject) -> None:
        query = data.draw(queries(data.draw(st.integers(1, 3 if DEEP else 2)), construct))
        partition_by = [data.draw(st.sampled_from(query.columns))] if data.draw(st.booleans()) else []
        plan = compiled(query.sql, partition_by)
        strategies[plan.classification.strategy] += 1
        if plan.classification.strategy == "full_refresh":
            assert plan.classification.reasons, query.sql
        elif follow(plan, data.draw(paths())):
            moved.update(query.constructs)

    every_case()
