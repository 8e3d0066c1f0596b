"""Aggregates beside sums and extrema: merged where counts tell the result, else recomputed by group, ties decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.delta import states
from tests.properties.generate import VALUES, examples, expression, paths, quoted, schemas
from tests.properties.lake import check, compiled, final_rows, schema
from tests.properties.lake import states as path_of

MERGED = (
    "bool_and({boolean})", "every({boolean})", "bool_or({boolean})", "any({boolean})", "some({boolean})",
    "count_if({boolean})", "bool_and({boolean}) filter (where {boolean})",
    "count_if({boolean}) filter (where {boolean})",
    "coalesce(bool_or({boolean}), count_if({boolean}) > 1)",
)  # fmt: skip
TIED = (
    "max_by({any}, {other})", "min_by({any}, {other})", "max_by({any}, {other}) filter (where {boolean})",
    "first({any})", "first({any}, true)", "last({any})", "any_value({any}) filter (where {boolean})",
    "last({any}) ignore nulls", "first_value({any})", "collect_list({any})", "array_agg({any})", "collect_set({any})",
    "collect_list({any}) filter (where {boolean})", "collect_set({any}) filter (where {boolean})",
)  # fmt: skip
WHOLE = (
    "percentile({int}, 0.5)", "median({int})", "stddev({int})", "std({int})", "var_pop({int})", "variance({decimal})",
    "bit_and({int})", "bit_or({int})", "bit_xor({int})", "sum(distinct {int})", "avg(distinct {int})",
    "count(distinct case when {boolean} then {int} end)", "sum(distinct {int}) filter (where {boolean})",
    "covar_pop({int}, {int})", "percentile_cont(0.5) within group (order by {int})",
)  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "strategy", "rule"),
    [
        (MERGED, "aggregate_merge", "AGG001"),
        (TIED, "group_recompute", "AGG008"),
        (WHOLE, "group_recompute", ""),
    ],
    ids=["merged", "tied", "whole"],
)
def test_every_function_of_a_group_equals_a_recompute_after_every_batch(
    calls: tuple[str, ...], strategy: str, rule: str
) -> None:
    @examples(0.1)
    @given(data=st.data())
    def every_case(data: st.DataObject) -> None:
        columns = data.draw(schemas())
        chosen = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=2))
        items = [f"{_filled(data.draw, call, columns)} as r{number}" for number, call in enumerate(chosen)]
        key = quoted(data.draw(st.sampled_from(columns)).name)
        group = f" group by {key}" if data.draw(st.booleans()) else ""
        plan = compiled(f"select {', '.join(items)} from ods.t{group}", columns)
        found = plan.classification
        assert found.strategy == strategy, (plan.model.sql, found.reasons)
        assert not rule or rule in {reason.rule for reason in found.reasons}
        check(plan, columns, data.draw(paths(columns)))

    every_case()


def _filled(draw: object, call: str, columns: object) -> str:
    types = {"any": sorted(VALUES), "other": ["int", "decimal(10,2)", "date", "string"], "boolean": ["boolean"],
             "int": ["int"], "decimal": ["decimal(10,2)"]}  # fmt: skip
    for hole, choices in types.items():
        while "{" + hole + "}" in call:
            type_ = draw(st.sampled_from(choices))  # type: ignore[operator]
            call = call.replace("{" + hole + "}", expression(draw, columns, type_, 1), 1)  # type: ignore[arg-type]
    return call


COLUMNS = schema(g="string", v="int", b="boolean")
_NULLS = path_of({"1": ("x", 1, None), "2": ("x", 2, True)}, {"2": None})
_TIES = path_of({"2": ("x", 1, True), "3": ("x", 2, True)}, {"1": ("x", 3, True)}, {"1": None})


def test_bool_and_of_no_values_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "select g, bool_and(b) as r from ods.t group by g"
    assert check(compiled(sql, COLUMNS), COLUMNS, _NULLS)
    monkeypatch.setattr(states, "_unless_empty", lambda count, value: value)
    with pytest.raises(AssertionError, match=r"^rows after"):
        check(compiled(sql, COLUMNS), COLUMNS, _NULLS)


def test_a_list_is_in_the_order_of_row_keys() -> None:
    plan = compiled("select g, collect_list(v) as r, first(v) as f from ods.t group by g", COLUMNS)
    assert [final_rows(plan, COLUMNS, _TIES[:n]) for n in (1, 2, 3)] == [
        [("x", [1, 2], 1)], [("x", [3, 1, 2], 3)], [("x", [1, 2], 1)],
    ]  # fmt: skip
