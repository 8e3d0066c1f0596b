"""Aggregates under other names, and the order of percentiles that would be lost."""

from __future__ import annotations

import pytest

from sqlmesh_like.errors import SqlError
from tests.properties.lake import compiled, schema

COLUMNS = schema(s="string", v="int", b="boolean")


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("every(b)", "BOOL_AND(b)"),
        ("any(b)", "BOOL_OR(b)"),
        ("some(b)", "BOOL_OR(b)"),
        ("mean(v)", "AVG(v)"),
        ("std(v)", "STDDEV_SAMP(v)"),
        ("percentile_cont(0.25) within group (order by v)", "PERCENTILE(v, 0.25)"),
    ],
)
def test_a_synonym_is_the_function_it_stands_for(written: str, known: str) -> None:
    facts = compiled(f"select s, {written} as r from ods.t group by s", COLUMNS).facts
    assert facts.tree.sql("spark") == f"SELECT s, {known} AS r FROM ods.t GROUP BY s"


def test_like_any_is_no_aggregate() -> None:
    facts = compiled("select s from ods.t where s like any ('a%', 'b%')", COLUMNS).facts
    assert "LIKE ANY" in facts.tree.sql("spark")


@pytest.mark.parametrize("call", ["percentile_cont(0.5)", "percentile_disc(0.5)"])
def test_a_percentile_that_would_become_an_approximation_is_refused(call: str) -> None:
    order = "v desc" if "cont" in call else "v"
    with pytest.raises(SqlError, match=r"m\.sql:1:8: .*WITHIN GROUP"):
        compiled(f"select {call} within group (order by {order}) as r from ods.t", COLUMNS)
