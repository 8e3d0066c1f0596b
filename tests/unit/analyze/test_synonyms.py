"""Aggregates under other names, and the order of percentiles that would be lost."""

from __future__ import annotations

import pytest

from sqlmesh_like.dialects import SPARK
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


@pytest.mark.parametrize(
    ("call", "strategy"),
    [
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v DESC)", "group_recompute"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY v DESC) FILTER(WHERE v > 1)", "group_recompute"),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY v)", "group_recompute"),
        ("TO_CHAR(v, '99.9')", "row_based"),
    ],
)
def test_what_sqlglot_would_change_is_run_as_written(call: str, strategy: str) -> None:
    made = compiled(f"select {call} as r from ods.t", COLUMNS)
    assert made.facts.tree.sql(SPARK) == f"SELECT {call} AS r FROM ods.t"
    assert made.classification.strategy == strategy


def test_a_form_of_within_group_that_spark_has_not_is_refused() -> None:
    with pytest.raises(SqlError, match=r"m\.sql:1:8: MODE … WITHIN GROUP is not Spark SQL"):
        compiled("select mode() within group (order by v) as r from ods.t", COLUMNS)
