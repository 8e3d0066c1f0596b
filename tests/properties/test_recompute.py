"""Random queries follow random changes of their inputs exactly, and the cases cover what the compiler can do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, seed
from hypothesis.strategies import sampled_from

from sqlmesh_like.classify.strategy import Strategy
from tests.levels import IS_DEEP, count, sample
from tests.properties.cases import CONSTRUCTS, REBUILT, Drawn, cases, examples

CASES = count(1, 10, 220)
"""Of each construct: 60 in all, 550 or more than 10,000; the other properties add to them."""
TURNS: tuple[tuple[Strategy | None, ...], ...] = ((), (), ("recompute_merge", None))
"""The ways of the batches of a case: in a third of them every other batch is merged from the recomputed query."""
PLANNED = count(1, 8, 120)
"""Of each construct, of which only the plan is asked for."""
FEWEST = count(1, 10, 220)
"""Cases of each strategy among those that are planned."""
ENOUGH = count(1, 3, 3)
ROUNDS = 12
"""So many cases of each construct must change their table. Where fewer do, more are drawn: no seed may fail here."""
MOST_REBUILT = 0.4
STRATEGIES = ("row_based", "aggregate_merge", "group_recompute", "partition_rescan")


@dataclass
class Tally:
    """What became of the cases of one construct."""

    moved: int = 0
    strategies: Counter[str] = field(default_factory=Counter)
    failure: Exception | None = None


def tally(construct: str) -> Tally:
    """Run the cases whose outermost operator has a construct."""
    totals = Tally()
    for number in range(ROUNDS):
        if totals.moved < ENOUGH and totals.failure is None:
            _run(construct, number, totals)
    return totals


def _run(construct: str, number: int, counts: Tally) -> None:
    @examples(CASES)
    @given(drawn=cases(construct), turns=sampled_from(TURNS))
    def every_case(drawn: Drawn, turns: tuple[Strategy | None, ...]) -> None:
        strategy = drawn.case.plan.classification.strategy
        counts.strategies[strategy] += 1
        if strategy == "full_refresh":
            assert drawn.case.plan.classification.reasons, drawn.case.sql
        else:
            counts.moved += drawn.case.follow(*turns) > 0

    try:
        (every_case if IS_DEEP else seed(number)(every_case))()
    except Exception as failure:  # noqa: BLE001 - it is raised by the test of this construct
        counts.failure = failure


@pytest.mark.checklist(60, 61, 62, 63)
@sample("construct", CONSTRUCTS, every=3)
def test_a_maintained_table_equals_a_recompute_after_every_batch(construct: str) -> None:
    totals = tally(construct)
    if totals.failure is not None:
        raise totals.failure
    assert totals.moved >= ENOUGH, f"{construct}: only {totals.moved} cases changed the table: {totals.strategies}"


def test_most_cases_are_incremental_and_every_strategy_is_tried() -> None:
    whole = Counter[str]()
    for construct in CONSTRUCTS:

        @examples(PLANNED)
        @given(drawn=cases(construct))
        def every_case(drawn: Drawn) -> None:
            whole[drawn.case.plan.classification.strategy] += 1  # only planned: the tests above follow them

        every_case()
    assert whole["full_refresh"] <= MOST_REBUILT * whole.total(), whole
    lacking = {strategy: whole[strategy] for strategy in STRATEGIES if whole[strategy] < FEWEST}
    assert not lacking, f"strategies with too few cases: {lacking} of {whole}"


@pytest.mark.parametrize("construct", REBUILT)
def test_what_is_not_maintained_is_rebuilt(construct: str) -> None:
    @examples(CASES)
    @given(drawn=cases(construct, largest=1))
    def every_case(drawn: Drawn) -> None:
        assert drawn.case.plan.classification.strategy == "full_refresh", drawn.case.sql
        drawn.case.follow()

    every_case()
