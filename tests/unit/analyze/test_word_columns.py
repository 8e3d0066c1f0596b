# ruff: noqa: E501
"""Columns named as functions without brackets are columns where Spark finds one, and the functions elsewhere.

Each expectation is what Spark 3.5 answers.
"""

from __future__ import annotations

import pytest
import sqlglot

from sqlmesh_like.analyze.author_text import spark_sql
from sqlmesh_like.analyze.expressions.clock import clock_calls
from sqlmesh_like.analyze.word_columns import with_word_columns
from sqlmesh_like.dialects import SPARK
from tests.properties.lake import compiled, schema

COLUMNS = {"t": ("current_date", "Current_Timestamp", "current_user", "a"), "u": ("a",)}
READ = {
    "select current_date, current_date(), t.current_date from t": "select `current_date`, current_date(), t.current_date from t",
    "select CURRENT_DATE from t where current_timestamp = 2": "select `current_date` from t where `current_timestamp` = 2",
    "select current_user from t": "select `current_user` from t",
    "select x.d from (select current_date as d from u) as x join t on x.d = current_date": (
        "select x.d from (select current_date as d from u) as x join t on x.d = `current_date`"
    ),
    "with c as (select current_date from t) select current_date + 1 as y from c, u where current_timestamp > '2024-01-01'": (
        "with c as (select `current_date` from t) select `current_date` + 1 as y from c, u"
        " where current_timestamp > '2024-01-01'"
    ),
    "select current_date from t union all select current_date from u": (
        "select `current_date` from t union all select current_date from u"
    ),
    "select (select current_date from u) as x from t": "select (select current_date from u) as x from t",
    "select a as current_date, current_date as x from u order by current_date": (
        "select a as current_date, current_date as x from u order by `current_date`"
    ),
    "select a as current_date, count(*) as n from u group by a having current_date > 0": (
        "select a as current_date, count(*) as n from u group by a having `current_date` > 0"
    ),
    "select 1 as x from u lateral view explode(array(1)) e as current_date where current_date = 1": (
        "select 1 as x from u lateral view explode(array(1)) e as current_date where `current_date` = 1"
    ),
    "select session_user from u": "select `session_user` from u",
}


@pytest.mark.parametrize("query", READ)
def test_a_word_is_what_spark_takes_it_for(query: str) -> None:
    read = with_word_columns(sqlglot.parse_one(query, dialect=SPARK), lambda _, name: COLUMNS.get(name))
    assert read.sql(SPARK) == sqlglot.parse_one(READ[query], dialect=SPARK).sql(SPARK)


def test_the_parameter_of_a_lambda_is_not_the_clock() -> None:
    query = sqlglot.parse_one("select transform(array(1), current_date -> current_date + 1) as x", dialect=SPARK)
    assert not clock_calls(with_word_columns(query, lambda *_: None))


def test_a_model_reads_the_column_in_what_runs_and_follows_it() -> None:
    model = compiled("select a, current_date as day from ods.t", schema(a="int", current_date="string"))
    assert model.facts.schema is not None
    assert [column.type for column in model.facts.schema] == ["int", "string"]
    assert "`current_date`" in spark_sql(model.facts.tree, lambda *_: None)
    assert not clock_calls(model.facts.tree)
    assert model.classification.strategy == "row_based"
