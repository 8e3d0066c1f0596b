"""Sums and averages of doubles with a declared tolerance: merged where the bound of their error allows it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sqlmesh_like.compiled_model import CompiledModel
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.delta import aggregates
from sqlmesh_like.delta.keys import weight
from sqlmesh_like.delta.states import AggregateState
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot, MemoryLake
from sqlmesh_like.project.nodes import ModelConfig
from tests.levels import count
from tests.properties.cases import examples
from tests.properties.lake import T, model, schema, states
from tests.properties.mutants import Patch

TOLERANCE = 1e-9
COLUMNS = schema(g="string", x="double", k="int")
SQL = "select g, sum(x) as s, avg(x) filter (where k > 0) as a, count(*) as n from ods.t group by g"
INFINITE = (math.inf, -math.inf, math.nan)
VALUES = (None, 1e300, -1e300, 1.0, -1.0, 0.1, 0.2, -0.3, 19.99, 1e-300, 5e-324, 1e16, -1e16, 0.0, -0.0, *INFINITE)
ROWS = st.tuples(st.sampled_from(("p", "q")), st.sampled_from(VALUES) | st.floats(-1e6, 1e6), st.integers(0, 2))
BATCHES = st.lists(
    st.dictionaries(st.sampled_from("123456"), st.none() | ROWS, min_size=1, max_size=4), min_size=2, max_size=5
)


def plan(sql: str = SQL, floating: float | None = TOLERANCE) -> CompiledModel:
    return Compiler({T: COLUMNS}).compile(replace(model(sql), config=ModelConfig(floating=floating)))


PLAN = plan()


def require_close(stored: float | None, values: Sequence[float], divisor: int) -> None:
    """A sum, or a mean, is NULL of nothing; within the tolerance, or as near as adding the values anew is."""
    if not values:
        assert stored is None
        return
    assert stored is not None
    if not all(map(math.isfinite, values)):
        assert math.isnan(stored) if math.isnan(sum(values)) else stored == sum(values)
        return
    exact = sum(map(Fraction, values)) / divisor
    rounding = len(values) * Fraction(2) ** -53 * sum(abs(Fraction(value)) for value in values) / divisor
    last_digit = Fraction(math.ulp(stored))
    assert abs(Fraction(stored) - exact) <= max(rounding, TOLERANCE * abs(exact)) + last_digit, (stored, values)
    assert stored or math.copysign(1, stored) > 0, "a sum has no negative zero"


def follow(compiled: CompiledModel, path: Sequence[LakeSnapshot]) -> list[list[dict[str, object]]]:
    """Maintain the table, and compare it after each batch; its rows then, with their states."""
    with closing(MemoryLake({T: COLUMNS})) as lake:
        lake.build(compiled, path[0])
        names, seen = [name for name, _ in lake._columns()], []
        for before, after in [(path[0], path[0]), *pairwise(path)]:
            lake.apply(compiled, before, after)
            groups: dict[object, list[Sequence[object]]] = {}
            for row in after[T].values():
                groups.setdefault(row[0], []).append(row)
            rows = [dict(zip(names, row, strict=True)) for row in lake.stored_rows()]
            assert sorted((row["g"], row["n"]) for row in rows) == sorted((g, len(own)) for g, own in groups.items())
            for row in rows:
                of_group = [(each[1], each[2]) for each in groups[row["g"]] if each[1] is not None]
                known = [x for x, k in of_group if k > 0]  # type: ignore[operator]
                require_close(row["s"], [x for x, _ in of_group], 1)  # type: ignore[misc,arg-type]
                require_close(row["a"], known, max(len(known), 1))  # type: ignore[arg-type]
            seen.append(rows)
        return seen


def test_sums_are_within_the_tolerance_whatever_cancels_leaves_or_is_infinite() -> None:
    assert PLAN.classification.strategy == "aggregate_merge"

    @examples(count(6, 100, 3000))
    @given(batches=BATCHES)
    def every_case(batches: list[dict[str, tuple[str, float | None, int] | None]]) -> None:
        follow(PLAN, states({"0": ("p", 1.5, 1)}, *batches))

    every_case()


MANY = {str(n): ("p", n / 7, 1) for n in range(100)}
CANCELLED = states({"1": ("p", 1.0, 1), "2": ("p", 1e16, 1)}, {"2": None, "3": ("p", 0.25, 1)})
LOST = states({"1": ("p", 1.0, 1), "2": ("p", 1e300, 1), "3": ("p", math.inf, 1)}, {"3": None}, {"2": None})


def test_a_change_is_added_and_rows_that_stay_are_not_read() -> None:
    path = states(MANY, {"0": ("p", 0.7, 1)}, {"5": None, "6": ("p", 12.5, 0)})
    additions = [rows[0]["_sml_additions_0"] for rows in follow(PLAN, path)]
    assert additions == [100, 102, 105]


def test_what_has_cancelled_is_computed_anew_and_the_bound_with_it() -> None:
    (row,) = follow(PLAN, CANCELLED)[-1]
    assert (row["s"], row["_sml_additions_0"], row["_sml_magnitude_0"]) == (1.25, 2, 1.25)
    assert [rows[0]["s"] for rows in follow(PLAN, LOST)] == [math.inf, 1e300, 1.0]


def test_an_overflow_ends_with_the_rows_that_cause_it() -> None:
    huge = {"1": ("p", 1e308, 1), "2": ("p", 1.0, 1)}
    with closing(MemoryLake({T: COLUMNS})) as lake:
        path = states(huge, {"3": ("p", 1.5e308, 1)}, {"1": None, "3": None})
        lake.build(PLAN, path[0])
        found = [lake.rows()]
        for before, after in pairwise(path):
            lake.apply(PLAN, before, after)
            found.append(lake.rows())
    assert [rows[0][1] for rows in found] == [1e308, math.inf, 1.0]


def test_sums_are_recomputed_by_default_and_where_something_is_computed_on_them() -> None:
    nested = "select g, s from (select g, sum(x) as s from ods.t group by g) as q where g <> ''"
    assert plan(floating=None).classification.strategy == "group_recompute"
    strategies = [
        plan(sql).classification.strategy for sql in (nested, "select g, stddev(x) as r from ods.t group by g")
    ]
    assert "aggregate_merge" not in strategies


def believe_every_sum(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aggregates, "_is_too_inexact", lambda total, states: exp.false())


def take_what_leaves_off_the_bound(patch: pytest.MonkeyPatch) -> None:
    aggregate_state = aggregates._aggregate_state

    def naive(state: AggregateState, arguments: Mapping[str, exp.Column], signed: bool) -> exp.Expr:
        if signed and state.kind == "magnitude":
            return exp.Sum(this=exp.Mul(this=exp.Abs(this=arguments[state.name].copy()), expression=weight()))
        return aggregate_state(state, arguments, signed)

    patch.setattr(aggregates, "_aggregate_state", naive)


@pytest.mark.parametrize("patch", [believe_every_sum, take_what_leaves_off_the_bound])
def test_a_naive_bound_is_found(patch: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    patch(monkeypatch)
    with pytest.raises(AssertionError):
        follow(plan(), CANCELLED)
