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
    bind_query(f"select {expression} as r from t")


def bind_query(query: str) -> None:
    with closing(sandbox()) as db:
        db.execute(TABLE)
        tree = sqlglot.parse_one(query, dialect="spark")
        db.execute(f"DESCRIBE {duck_text(add_type_checks(tree))}")


@pytest.mark.parametrize(
    "expression",
    [
        "f / d",
        "d / i",
        "max(i)",
        "min(f) over ()",
        "max(distinct d)",
        "i < 3",
        "rank() over (order by i, d desc)",
        "i between 1 and 3",
    ],
)
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
        ("a between a and a", "BETWEEN of"),
        ("row_number() over (partition by a order by i, a desc)", "ORDER BY of"),
        ("greatest(a, a)", "GREATEST of"),
        ("(i, d) < (3, 3)", "an order of"),
        ("rank() over (order by (i, d))", "ORDER BY of"),
    ],
)
def test_a_quotient_of_floats_is_a_double_and_nulls_in_lists_come_first(expression: str, reason: str) -> None:
    with pytest.raises(duckdb.Error, match=f"sml-not-checkable: {reason}"):
        bind(expression)


@pytest.mark.parametrize(
    "query",
    [
        "select i from t order by a", "select i, a as l from t order by i, l desc limit 1",
        "select i, a from t order by 2",
        "select i from t order by (i, d)", "select i, (i, d) as l from t order by 2",
        "select * from t order by s", "select i, collect_list(d) as l from t group by i order by l",
        "select i from t group by i order by collect_list(d)", "select distinct a as l from t order by l",
        "select a from t union all select a from t order by a", "select * from (select a from t order by a limit 1)",
        "with c as (select a as l, i from t) select l from c order by l limit 2",
        "select i from t where exists (select 1 from t as u order by u.a limit 1)",
    ],
)  # fmt: skip
def test_rows_are_not_ordered_by_lists_or_structs(query: str) -> None:
    with pytest.raises(duckdb.Error, match="sml-not-checkable: ORDER BY"):
        bind_query(query)


@pytest.mark.parametrize(
    "query",
    [
        "select i, a from t order by i", "select i as a, d from t order by a",
        "select i from t order by 1, f desc limit 1",
        "select i, count(*) as n from t group by i order by n, max(d)", "select distinct i from t order by i",
        "select i, a from t union all select i, a from t order by i limit 3", "select * from t order by d",
        "with c as (select i, a from t order by i) select i from c order by i", "select i + 1 from t order by 1",
        "select t.i from t order by t.i, d + 1",
    ],
)  # fmt: skip
def test_rows_are_ordered_by_plain_values_beside_lists(query: str) -> None:
    bind_query(query)
