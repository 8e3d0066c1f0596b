"""Types with which DuckDB would give another value than Spark: such a query cannot be bound."""

from __future__ import annotations

from contextlib import closing

import duckdb
import pytest
import sqlglot

from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import sandbox
from sqlmesh_like.duckdb.guards import add_type_checks

TABLE = "CREATE TABLE t AS SELECT CAST(1 AS FLOAT) AS f, 3.0::DOUBLE AS d, 2 AS i, ['a', NULL] AS a, {'x': 1} AS s"


def bind(expression: str) -> None:
    with closing(sandbox()) as db:
        db.execute(TABLE)
        tree = sqlglot.parse_one(f"select {expression} as r from t", dialect="spark")
        db.execute(f"DESCRIBE {duck_text(add_type_checks(tree))}")


@pytest.mark.parametrize("expression", ["f / d", "d / i", "max(i)", "min(f) over ()", "max(distinct d)", "i < 3"])
def test_types_that_both_engines_combine_alike(expression: str) -> None:
    bind(expression)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("f / f", "/ of FLOAT and FLOAT"),
        ("f / i", "/ of FLOAT and INTEGER"),
        ("max(a)", r"MIN or MAX of VARCHAR\[\]"),
        ("min(s) over ()", "MIN or MAX of STRUCT"),
        ("max(a) filter (where i > 0)", "MIN or MAX of"),
        ("a < a", "an order of"),
        ("greatest(a, a)", "GREATEST of"),
    ],
)
def test_a_quotient_of_floats_is_a_double_and_nulls_in_lists_come_first(expression: str, reason: str) -> None:
    with pytest.raises(duckdb.Error, match=f"sml-not-checkable: {reason}"):
        bind(expression)
