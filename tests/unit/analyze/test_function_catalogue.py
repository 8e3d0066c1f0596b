"""What is known of a function stands once, and what DuckDB is trusted with is of functions that are known."""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from sqlmesh_like.analyze.functions.aggregates import AGGREGATES
from sqlmesh_like.analyze.functions.catalogue import all_functions
from sqlmesh_like.duckdb.exact.form_registry import FORMS

_OF_GROUPS = (exp.Grouping, exp.GroupingId)
"""Numbers of a grouping set, which the binder replaces."""
_OF_WINDOWS = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.Ntile, exp.PercentRank, exp.CumeDist,
)  # fmt: skip


def test_each_name_and_each_class_has_one_record() -> None:
    functions = list(all_functions())
    names = Counter(function.name for function in functions)
    kinds = Counter(function.kind for function in functions if function.kind is not None)
    assert not [name for name, number in names.items() if number > 1]
    assert not [kind for kind, number in kinds.items() if number > 1]


def test_an_aggregate_that_duckdb_computes_is_in_the_catalogue() -> None:
    trusted = {kind for kind in FORMS if issubclass(kind, exp.AggFunc)}
    assert trusted - {*_OF_GROUPS, *_OF_WINDOWS} <= set(AGGREGATES)


def test_a_form_of_one_use_alone_says_why() -> None:
    assert not [kind for kind, form in FORMS.items() if not form.is_listed and not form.why]
    assert not [kind for kind, form in FORMS.items() if form.proof is None and not form.is_listed]
