"""An edited query: where it has the meaning of the one before its table is kept, else it becomes that of a rebuild."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from

from sqlmesh_like.plan.fingerprint import meaning
from tests.levels import count
from tests.properties.case import Case, require_equal
from tests.properties.cases import CONSTRUCTS, examples
from tests.properties.edited_table import apply_edit, plan_after
from tests.properties.edits import OTHER, SAME, edited

CASES = count(2, 200, 10_000)


def _follow_edit(before: Case, after: Case) -> str:
    """Edit the query in the middle of its changes. Returns what was done with the table."""
    turn = len(before.path) // 2
    with before.lake() as lake:
        lake.build(before.plan, before.path[0])
        for old, new in pairwise(before.path[: turn + 1]):
            lake.apply(before.plan, old, new)
        plan = plan_after(before.plan, after.plan)
        done = apply_edit(before.plan, after.plan, lake, before.path[turn])[0] if plan is after.plan else "as recorded"
        require_equal(lake, plan, f"the edit of {before.sql}")
        for old, new in pairwise(after.path[turn:]):
            lake.apply(plan, old, new)
            require_equal(lake, plan, f"a change after the edit of {before.sql}")
            assert not lake.verify(after.plan), f"{before.sql} has other rows than {after.sql}"
    return done


def test_a_table_is_that_of_the_edited_query() -> None:
    done = Counter[str]()

    @examples(CASES)
    @given(sampled_from(CONSTRUCTS).flatmap(lambda construct: edited(construct, {**SAME, **OTHER})))
    def every_case(drawn: tuple[str, Case, Case]) -> None:
        _, before, after = drawn
        if after.plan.classification.strategy != "full_refresh" and not before.clocks:
            done[after.run_check(lambda: _follow_edit(before, after))] += 1

    every_case()
    assert done.total() > 0, done


@pytest.mark.release
def test_edits_that_change_no_row_are_mostly_seen_to_change_none() -> None:
    done = Counter[bool]()

    @examples(CASES)
    @given(sampled_from(CONSTRUCTS).flatmap(lambda construct: edited(construct, SAME)))
    def every_case(drawn: tuple[str, Case, Case]) -> None:
        _, before, after = drawn
        is_alike = before.plan.classification.strategy == after.plan.classification.strategy
        if is_alike and (known := meaning(before.plan)):
            done[known == meaning(after.plan)] += 1

    every_case()
    assert done[True] >= 0.7 * done.total() > 0, done
