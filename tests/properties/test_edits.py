"""An edited query: where it has the meaning of the one before its table is kept, else it becomes that of a rebuild."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from

from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake
from sqlmesh_like.plan.edits.edited_query import edit_between, program_strategy
from sqlmesh_like.plan.edits.outline import Edit, edit_of, stored_outline
from sqlmesh_like.plan.edits.recorded_query import query_before, recorded_query
from sqlmesh_like.plan.fingerprint import fingerprint, meaning
from sqlmesh_like.plan.history import TableRecord
from tests.levels import count
from tests.properties.case import Case, require_equal
from tests.properties.cases import CONSTRUCTS, examples
from tests.properties.edits import OTHER, SAME, edited

CASES = count(2, 200, 10_000)


def _follow_edit(before: Case, after: Case) -> str:
    """Edit the query in the middle of its changes. Returns what was done with the table."""
    turn = len(before.path) // 2
    with before.lake() as lake:
        lake.build(before.plan, before.path[0])
        for old, new in pairwise(before.path[: turn + 1]):
            lake.apply(before.plan, old, new)
        done = _apply(before, after, turn, lake)
        require_equal(lake, after.plan, f"the edit of {before.sql}")
        for old, new in pairwise(after.path[turn:]):
            lake.apply(after.plan, old, new)
            require_equal(lake, after.plan, f"a change after the edit of {before.sql}")
    return done


def _apply(before: Case, after: Case, turn: int, lake: MemoryLake) -> str:
    if meaning(before.plan) and meaning(before.plan) == meaning(after.plan):
        return "kept"
    outline, stored = stored_outline(before.plan), before.plan.facts.schema or ()
    if (edit := edit_of(outline, after.plan, stored)) is not None:
        assert edit.rows is not None
        lake.derive(edit.rows)
        return "derived"
    if (edit := _edit_between(before, after)) is not None:
        if edit.rows is not None:
            lake.derive(edit.rows)
            return "columns computed"
        lake.apply_edit(after.plan, edit.table(after.plan.table), program_strategy(after.plan), after.path[turn])
        return "followed"
    is_alike = before.plan.facts.schema == after.plan.facts.schema and before.plan.table.state == after.plan.table.state
    if not is_alike or after.plan.table.build is None or before.plan.table.build is None:
        lake.build(after.plan, after.path[turn])
        return "rebuilt"
    lake.apply(after.plan, after.path[turn], after.path[turn], strategy="recompute_merge")
    return "compared"


def _edit_between(before: Case, after: Case) -> Edit | None:
    """The edit from the query that a commit of the table records."""
    record = TableRecord(
        "model.shop.m", fingerprint(before.plan), {}, "2024-01-01T00:00:00+00:00", "row_based",
        query=recorded_query(before.plan),
    )  # fmt: skip
    if before.plan.table.build is None or after.plan.table.build is None:
        return None
    known = query_before(record, after.plan)
    return None if known is None else edit_between(known, after.plan)


def test_a_table_is_that_of_the_edited_query() -> None:
    done = Counter[str]()

    @examples(CASES)
    @given(sampled_from(CONSTRUCTS).flatmap(lambda construct: edited(construct, {**SAME, **OTHER})))
    def every_case(drawn: tuple[str, Case, Case]) -> None:
        _, before, after = drawn
        if after.plan.classification.strategy != "full_refresh" and not before.clocks:
            done[after.run_check(lambda: _follow_edit(before, after))] += 1

    every_case()
    print(done)
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
