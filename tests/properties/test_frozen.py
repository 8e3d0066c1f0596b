"""Tables with frozen partitions follow random changes: other rows are the query's, those of frozen partitions stay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.delta.frozen import FrozenPartitions
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake, _count_rows
from sqlmesh_like.names import KEY
from tests.levels import count
from tests.properties.case import Case
from tests.properties.cases import CONSTRUCTS, Drawn, cases, examples

CASES = count(6, 900, 3_000)
Stored = Counter[tuple[Any, ...]]


class FrozenTable:
    """The table of a case whose boundary moves on from batch to batch."""

    def __init__(self, case: Case, lake: MemoryLake, type_: str) -> None:
        self.case, self.lake, self.type = case, lake, type_
        self.column = next(
            each.name for each in case.plan.facts.schema or () if each.name.lower() == case.partition_by[0].lower()
        )
        self.done: Counter[str] = Counter()

    def follow(self, boundaries: Sequence[str], turns: Sequence[Strategy | None]) -> None:
        case, lake = self.case, self.lake
        lake.build(case.plan, case.path[0])
        for number, (before, after) in enumerate(pairwise(case.path)):
            frozen = FrozenPartitions(self.column, boundaries[min(number, len(boundaries) - 1)], self.type)
            now = case.clocks[number] if case.clocks else None
            kept, query_before = self._rows(frozen, "stored"), self._rows(frozen, "query")
            done = lake.apply(case.plan, before, after, now, self._strategy(turns[number % len(turns)]), frozen)
            what = f"batch {number + 1} of {case.sql}, frozen before {frozen.before}"
            assert self._rows(frozen, "stored") == kept, f"a frozen row has changed in {what}"
            surplus, missing = self._live(frozen, "stored"), self._live(frozen, "query")
            assert surplus == missing, f"{what}\nsurplus {surplus - missing}\nmissing {missing - surplus}"
            if self._differs(query_before, self._rows(frozen, "query"), kept):
                self.done["left out"] += 1
                assert [note.rule for note in done.notes][-1:] == ["FRZ003"], f"rows were left out silently in {what}"
            self.done["frozen"] += bool(kept)
            self.done["changed"] += bool(done.upserts or done.deletes)

    def _differs(self, before: Stored, after: Stored, stored: Stored) -> bool:
        """Whether a row has changed, by key, that is not what the table has."""
        place = [name for name, _ in self.lake._columns()].index(KEY)
        old, new, kept = ({row[place]: row for row in rows} for rows in (before, after, stored))
        return any(old.get(key) != new.get(key) != kept.get(key) for key in {*old, *new})

    def _strategy(self, turn: Strategy | None) -> Strategy:
        own = self.case.plan.classification.strategy
        if turn == "recompute_merge" or self.case.plan.table.derive is None:
            return "recompute_merge"
        return "group_recompute" if own == "partition_rescan" else own

    def _live(self, frozen: FrozenPartitions, of: str) -> Stored:
        return self._selected(frozen.is_live().sql("duckdb"), of)

    def _rows(self, frozen: FrozenPartitions, of: str) -> Stored:
        return self._selected(frozen.is_frozen().sql("duckdb"), of)

    def _selected(self, condition: str, of: str) -> Stored:
        """Rows with keys and hidden state: of the table, or of a build from the inputs as they are now."""
        build = self.case.plan.table.build
        assert build is not None
        columns = self.lake._columns()
        source = "target.this" if of == "stored" else f"({self.lake._whole(build)})"
        cast = ", ".join(f"CAST({duck_quoted(name)} AS {type_}) AS {duck_quoted(name)}" for name, type_ in columns)
        rows = self.lake._db.execute(f"SELECT {cast} FROM {source} WHERE {condition}").fetchall()
        return _count_rows(rows)


def _type(case: Case) -> str:
    name = case.partition_by[0].lower()
    return next((each.type or "" for each in case.plan.facts.schema or () if each.name.lower() == name), "")


def _values(case: Case) -> list[Any]:
    """Values of the partition column, over all states."""
    seen: set[Any] = set()
    with case.lake() as lake:
        for state in case.path:
            lake.build(case.plan, state)
            name = duck_quoted(case.partition_by[0])
            seen |= {row[0] for row in lake._db.execute(f"SELECT DISTINCT {name} FROM target.this").fetchall()}
    return sorted(seen - {None})


@st.composite
def frozen_cases(draw: st.DrawFn) -> tuple[Case, list[str], list[Strategy | None]] | None:
    drawn: Drawn = draw(st.sampled_from(CONSTRUCTS).flatmap(lambda wanted: cases(wanted, partitioned=True)))
    case = drawn.case
    if not case.partition_by or case.plan.classification.strategy == "full_refresh":
        return None
    if _type(case) not in ("date", "string", "int", "bigint") or case.plan.table.build is None:
        return None
    values = _values(case)
    if not values:
        return None
    case = replace(case, frozen_before=str(values[0]))
    boundaries = sorted(draw(st.lists(st.sampled_from(values), min_size=1, max_size=len(case.path))))
    turns = draw(st.sampled_from(((None,), (None, "recompute_merge"), (None, None, "recompute_merge"))))
    return case, [str(value) for value in boundaries], list(turns)


def test_live_rows_are_the_query_s_and_frozen_ones_stay() -> None:
    totals = Counter[str]()

    @examples(CASES)
    @given(frozen_cases())
    def every_case(drawn: tuple[Case, list[str], list[Strategy | None]] | None) -> None:
        if drawn is None:
            return
        case, boundaries, turns = drawn
        with case.lake() as lake:
            table = FrozenTable(case, lake, _type(case))
            case.run_check(lambda: table.follow(boundaries, turns))
            totals.update(table.done)
            totals[case.plan.classification.strategy] += 1
            totals["compared"] += case.plan.table.derive is None

    every_case()
    print(totals)
    # Few cases need not draw each strategy.
    strategies = ("row_based", "aggregate_merge") if CASES > 100 else ()
    assert all(totals[name] for name in ("frozen", "changed", "left out", *strategies)), totals


if __name__ == "__main__":
    pytest.main([__file__, "-s"])
