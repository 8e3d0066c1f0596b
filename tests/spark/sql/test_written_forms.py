"""Forms of SQL as people write them: the program on Spark beside Spark's own result of the query as it is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from sqlmesh_like.names import Schema
from sqlmesh_like.spark.spark_units import SparkUnits
from tests.properties.case import Case
from tests.spark.sql.test_random_cases import follow
from tests.unit.delta import test_query_forms as query_forms
from tests.unit.delta import test_time_windows as time_windows

WINDOWS = time_windows.MERGED | time_windows.OTHERS


def case(sql: str, columns: Schema, states: Sequence[LakeSnapshot]) -> Case:
    """The query over states of tables, each a batch after the one before."""
    batches = [{ref.split(".")[-1]: rows for ref, rows in states[0].items()}]
    for before, after in pairwise(states):
        gone = {ref: dict.fromkeys(before[ref].keys() - after[ref].keys()) for ref in after}
        batches.append({ref.split(".")[-1]: {**gone[ref], **rows} for ref, rows in after.items()})
    typed = [(column.name, column.type or "") for column in columns]
    return Case(sql, {"t": typed, "u": typed}, batches)


def followed(spark: SparkSession, sql: str, columns: Schema, states: Sequence[LakeSnapshot]) -> set[str]:
    """The strategies by which the query has followed its tables to the rows of Spark."""
    outcomes = follow(SparkUnits(lambda: spark), case(sql, columns, states))
    return {str(outcome.strategy) for outcome in outcomes}


def test_windows_of_time_are_those_of_spark(spark: SparkSession) -> None:
    states = time_windows.path(1)[:2]
    assert followed(spark, WINDOWS["sliding, moved"], time_windows.COLUMNS, states) == {"aggregate_merge"}


@pytest.mark.release
def test_in_as_a_value_is_false_where_it_is_unknown(spark: SparkSession) -> None:
    """As Spark has it, above NULL on both sides."""
    sql, path = query_forms.FORMS["IN, aggregated"], query_forms.random_path(4, batches=2)
    assert followed(spark, sql, query_forms.COLUMNS, path) == {"aggregate_merge"}


def test_pairs_of_values_are_merged_as_spark_regards_them(spark: SparkSession) -> None:
    calls = (
        "regr_count(a, b) as n, regr_avgx(a, b) as x, regr_avgy(a, f) as y, regr_sxx(a, b) as xx, regr_syy(a, b) as yy"
    )
    sql = f"select s, {calls}, regr_avgx(f, cast(b as decimal(12,3))) as d from ods.t group by s"
    assert followed(spark, sql, query_forms.COLUMNS, query_forms.random_path(6, batches=2)) == {"aggregate_merge"}


@pytest.mark.release
@pytest.mark.parametrize("name", WINDOWS)
def test_every_form_of_windows_of_time_is_that_of_spark(spark: SparkSession, name: str) -> None:
    assert "full_refresh" not in followed(spark, WINDOWS[name], time_windows.COLUMNS, time_windows.path(len(name))[:3])
