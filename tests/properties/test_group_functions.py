"""Aggregates beside sums and extrema: merged where counts tell the result, else recomputed by group, ties decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlmesh_like.analyze.functions import merging
from tests.levels import count
from tests.properties.case import Case
from tests.properties.cases import examples
from tests.properties.expressions import Col, filled, quoted
from tests.properties.lake import check, compiled, final_rows, schema
from tests.properties.lake import states as path_of
from tests.properties.values import batches, tables

MERGED = (
    "bool_and({boolean})", "every({boolean})", "bool_or({boolean})", "any({boolean})", "some({boolean})",
    "count_if({boolean})", "bool_and({boolean}) filter (where {boolean})",
    "count_if({boolean}) filter (where {boolean})",
    "coalesce(bool_or({boolean}), count_if({boolean}) > 1)", "stddev({int})", "std({int})", "var_pop({int})",
    "variance(cast({decimal} as decimal(10,2)))", "regr_count({int}, {decimal})", "regr_avgx({decimal}, {int})",
    "regr_avgy({int}, {int}) filter (where {boolean})", "regr_sxx({int}, {int})",
    "regr_syy(cast({decimal} as decimal(10,2)), {int})", "stddev_pop({int}) filter (where {boolean})",
)  # fmt: skip
CHOSEN = (
    "max_by({any}, {ordered})", "min_by({any}, {ordered})", "max_by({any}, {ordered}) filter (where {boolean})",
    "first({any})", "first({any}, true)", "last({any})", "any_value({any}) filter (where {boolean})",
    "last({any}) ignore nulls", "first_value({any})",
)  # fmt: skip
TIED = (
    "collect_list({any})", "array_agg({any})", "collect_set({any})",
    "collect_list({any}) filter (where {boolean})", "collect_set({any}) filter (where {boolean})",
)  # fmt: skip
WHOLE = (
    "percentile({int}, 0.5)", "median({int})", "var_pop(distinct {int})",
    "bit_and({int})", "bit_or({int})", "bit_xor({int})", "sum(distinct {int})", "avg(distinct {int})",
    "count(distinct case when {boolean} then {int} end)", "sum(distinct {int}) filter (where {boolean})",
    "covar_pop({int}, {int})", "percentile_cont(0.5) within group (order by {int})",
)  # fmt: skip


@pytest.mark.parametrize(
    ("calls", "strategy", "rule"),
    [
        (MERGED, "aggregate_merge", "AGG001"),
        (CHOSEN, "aggregate_merge", "AGG009"),
        (TIED, "group_recompute", "AGG008"),
        (WHOLE, "group_recompute", ""),
    ],
    ids=["merged", "chosen", "tied", "whole"],
)
def test_every_function_of_a_group_equals_a_recompute_after_every_batch(
    calls: tuple[str, ...], strategy: str, rule: str
) -> None:
    @examples(count(5, 27, 500))
    @given(data=st.data())
    def every_case(data: st.DataObject) -> None:
        columns = data.draw(tables())
        scope = [Col(quoted(name), type_) for name, type_ in columns]
        chosen = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=2))
        items = [f"{filled(data.draw, call, scope, 2)} as r{number}" for number, call in enumerate(chosen)]
        key = data.draw(st.sampled_from(scope)).name
        group = f" group by {key}" if data.draw(st.booleans()) else ""
        changes = data.draw(batches({"t": columns}))
        case = Case(f"select {', '.join(items)} from ods.t{group}", {"t": columns}, changes)
        classification = case.plan.classification
        assert classification.strategy == strategy, (case.sql, classification.reasons)
        assert not rule or rule in {reason.rule for reason in classification.reasons}
        case.follow()

    every_case()


COLUMNS = schema(g="string", v="int", b="boolean")
_NULLS = path_of({"1": ("x", 1, None), "2": ("x", 2, True)}, {"2": None})
_TIES = path_of({"2": ("x", 1, True), "3": ("x", 2, True)}, {"1": ("x", 3, True)}, {"1": None})


def test_bool_and_of_no_values_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "select g, bool_and(b) as r from ods.t group by g"
    assert check(compiled(sql, COLUMNS), COLUMNS, _NULLS)
    monkeypatch.setattr(merging, "unless_empty", lambda count, value: value)
    with pytest.raises(AssertionError, match=r"^rows after"):
        check(compiled(sql, COLUMNS), COLUMNS, _NULLS)


def test_the_row_with_the_largest_order_decides_even_if_its_value_is_null() -> None:
    plan = compiled("select g, max_by(v, b) as r, min_by(v, g) as s, any_value(v) as t from ods.t group by g", COLUMNS)
    path = path_of(
        {"1": ("x", 1, False), "2": ("x", None, True), "3": ("y", 3, None)},
        {"4": ("x", 4, True)},
        {"0": ("x", None, False), "4": None},
        {"2": ("x", 5, False), "3": ("y", None, True)},
    )
    assert [final_rows(plan, COLUMNS, path[:n]) for n in (1, 2, 3, 4)] == [
        [("x", None, 1, 1), ("y", None, 3, 3)], [("x", 4, 1, 1), ("y", None, 3, 3)],
        [("x", None, None, None), ("y", None, 3, 3)], [("x", 5, None, None), ("y", None, None, None)],
    ]  # fmt: skip
    assert check(plan, COLUMNS, path)


def test_a_list_is_in_the_order_of_row_keys() -> None:
    plan = compiled("select g, collect_list(v) as r, first(v) as f from ods.t group by g", COLUMNS)
    assert [final_rows(plan, COLUMNS, _TIES[:n]) for n in (1, 2, 3)] == [
        [("x", [1, 2], 1)], [("x", [3, 1, 2], 3)], [("x", [1, 2], 1)],
    ]  # fmt: skip
