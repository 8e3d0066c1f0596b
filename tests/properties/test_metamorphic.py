"""The table does not depend on how a state was reached: on batches, rebuilds, order of rows or threads.

Tables are compared whole: derived keys and hidden state too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import assume, given

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, RowActions
from tests.levels import count
from tests.properties.case import Case, travelled
from tests.properties.cases import Drawn, cases, examples

CASES = count(2, 14, 200)
THREADS = 4


def agree(drawn: Drawn, check: Callable[[Case], None]) -> None:
    """The check of a case that is maintained incrementally; what fails says how to have it again."""
    assume(drawn.case.plan.classification.strategy != "full_refresh")
    drawn.case.run_check(lambda: check(drawn.case))


@examples(CASES)
@given(drawn=cases(largest=3))
def test_split_and_merged_batches_agree(drawn: Drawn) -> None:
    def check(case: Case) -> None:
        assert travelled(case, case.path) == travelled(case, [case.path[0], case.path[-1]])

    agree(drawn, check)


@examples(CASES)
@given(drawn=cases(largest=3))
def test_full_then_incremental_equals_incremental(drawn: Drawn) -> None:
    def check(case: Case) -> None:
        whole = travelled(case, case.path)
        assert travelled(case, case.path[1:]) == whole
        assert travelled(case, case.path[-1:]) == whole

    agree(drawn, check)


@examples(CASES)
@given(drawn=cases(largest=3))
def test_a_run_with_nothing_new_is_no_action(drawn: Drawn) -> None:
    """Neither on inputs that did not change nor on rows that were all written again as they were."""

    def check(case: Case) -> None:
        with case.lake() as lake:
            lake.build(case.plan, case.path[0])
            lake.apply(case.plan, case.path[0], case.path[1])
            for after in (case.path[1], _written_again(case.path[1])):
                assert lake.apply(case.plan, case.path[1], after) == RowActions(0, 0)

    agree(drawn, check)


@examples(CASES)
@given(drawn=cases(largest=3))
def test_other_orders_of_rows_and_more_threads_give_the_same_table(drawn: Drawn) -> None:
    def check(case: Case) -> None:
        backwards = [_reversed(snapshot) for snapshot in case.path]
        assert travelled(case, case.path) == travelled(case, backwards, THREADS)

    agree(drawn, check)


@examples(CASES // 2)
@given(drawn=cases(largest=2))
def test_the_way_back_restores_the_table(drawn: Drawn) -> None:
    def check(case: Case) -> None:
        for before, after in pairwise(case.path):
            assert travelled(case, [before, after, before]) == travelled(case, [before])

    agree(drawn, check)


def _written_again(snapshot: LakeSnapshot) -> LakeSnapshot:
    return {table: {key: (*row[:1], *row[1:]) for key, row in rows.items()} for table, rows in snapshot.items()}


def _reversed(snapshot: LakeSnapshot) -> LakeSnapshot:
    return {table: dict(reversed(list(rows.items()))) for table, rows in snapshot.items()}
