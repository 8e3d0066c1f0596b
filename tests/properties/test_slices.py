"""Tables cut into slices: the rows of all slices are those of the query, with the same keys and hidden state."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.delta.slices.partition_range import PartitionRange
from sqlmesh_like.delta.slices.restriction import UnsplitError
from sqlmesh_like.delta.slices.slice_program import compile_slice, partition_type
from sqlmesh_like.duckdb.duck_types import duck_quoted
from sqlmesh_like.duckdb.programs.memory_lake import MemoryLake, _count_rows
from tests.levels import count
from tests.properties.case import Case
from tests.properties.cases import CONSTRUCTS, Drawn, cases, examples

CASES = count(60, 500, 5_000)
Stored = Counter[tuple[Any, ...]]


def _rows(lake: MemoryLake, query: str) -> Stored:
    columns = lake._columns()
    cast = ", ".join(f"CAST({duck_quoted(name)} AS {type_}) AS {duck_quoted(name)}" for name, type_ in columns)
    return _count_rows(lake._db.execute(f"SELECT {cast} FROM ({query})").fetchall())


def _in_slices(case: Case, lake: MemoryLake, type_: str, cuts: list[str]) -> Stored:
    """The rows of all slices, each of which may only have rows of its range."""
    facts, rows = case.plan.facts, Counter[tuple[Any, ...]]()
    for low, high in zip([None, *cuts], [*cuts, None], strict=True):
        part = PartitionRange(type_, low, high)
        build = compile_slice(facts, case.plan.classification, part).table.build
        assert build is not None
        own = lake._whole(build)
        within = part.holds(_column(case)).sql("duckdb")
        outside = lake._db.execute(f"SELECT count(*) FROM ({own}) WHERE ({within}) IS NOT TRUE").fetchall()
        assert outside == [(0,)], f"rows of another slice than {part}"
        rows += _rows(lake, own)
    return rows


def _column(case: Case) -> Any:
    from sqlmesh_like.delta.keys import column

    return column(case.partition_by[0])


@st.composite
def sliced_cases(draw: st.DrawFn) -> tuple[Case, str, list[str]] | str:
    """A case, the type of its partition column, and where it is cut; or why it is not cut."""
    drawn: Drawn = draw(st.sampled_from(CONSTRUCTS).flatmap(lambda wanted: cases(wanted, partitioned=True)))
    case = drawn.case
    names = [each.name for each in case.plan.facts.schema or () if each.type in ("date", "string", "int", "bigint")]
    if not case.partition_by and names:
        case = replace(case, partition_by=(draw(st.sampled_from(names)),))
    try:
        type_ = partition_type(case.plan.facts, case.plan.classification)
        compile_slice(case.plan.facts, case.plan.classification, PartitionRange(type_))
    except UnsplitError as error:
        return str(error).partition(":")[0]
    if type_ not in ("date", "string", "int", "bigint"):
        return "type"
    with case.lake() as lake:
        lake.build(case.plan, case.path[-1])
        found = lake._db.execute(f"SELECT DISTINCT {duck_quoted(case.partition_by[0])} FROM target.this").fetchall()
    values = sorted({row[0] for row in found} - {None})
    cuts = draw(st.lists(st.sampled_from(values), unique=True, max_size=3)) if values else []
    return case, type_, [str(value) for value in sorted(cuts)]


def test_the_slices_of_a_table_are_the_table() -> None:
    totals = Counter[str]()

    @examples(CASES)
    @given(sliced_cases())
    def every_case(drawn: tuple[Case, str, list[str]] | str) -> None:
        if isinstance(drawn, str):
            totals[drawn] += 1
            return
        case, type_, cuts = drawn
        with case.lake() as lake:
            lake.build(case.plan, case.path[-1])
            whole = _rows(lake, "SELECT * FROM target.this")
            sliced = case.run_check(lambda: _in_slices(case, lake, type_, cuts))
        assert sliced == whole, f"{case.sql} by {case.partition_by[0]}, cut at {cuts}"
        totals[case.plan.classification.strategy] += 1
        totals["cut"] += bool(cuts) and len(whole) > 1

    every_case()
    print(totals)
    assert totals["cut"], totals


if __name__ == "__main__":
    pytest.main([__file__, "-s"])
