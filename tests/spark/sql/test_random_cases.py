"""Random queries follow random changes on Spark as well: the machine over Spark's steps, beside Spark's own recompute.

The cases are those of `tests/properties`, where the machine runs on DuckDB in memory. Each batch starts from a build.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from sqlmesh_like.errors import Location
from sqlmesh_like.names import NodeId
from sqlmesh_like.project.testing.unit_test_spec import Fixture
from sqlmesh_like.render.rendered import RenderedUnitTest
from sqlmesh_like.run.fixtures import FixtureRows
from sqlmesh_like.run.ports import Rows
from sqlmesh_like.run.unit_cases import TableRows, UnitCase
from sqlmesh_like.run.unit_tests import Outcome
from sqlmesh_like.spark.spark_units import SparkUnits
from tests.levels import count
from tests.properties.case import Case
from tests.properties.cases import Drawn, cases, examples
from tests.unit.delta.test_query_forms import COLUMNS, FORMS, LACKING, random_path

CASES = count(6, 6, 500)
NOON = datetime(2024, 1, 31, 12)
LEAST_MOVED = 0.3
"""Of the cases, how many must change the table by a program: else nothing is shown."""


@pytest.mark.release
def test_random_cases_equal_a_recompute_on_spark(spark: SparkSession) -> None:
    units = SparkUnits(lambda: spark)
    strategies, moved = Counter[str](), 0

    @examples(CASES, shrink=False)
    @given(drawn=cases())
    def every_case(drawn: Drawn) -> None:
        nonlocal moved
        outcomes = drawn.case.run_check(lambda: follow(units, drawn.case))
        strategies.update(str(outcome.strategy) for outcome in outcomes)
        moved += any(outcome.strategy != "full_refresh" for outcome in outcomes)

    every_case()
    assert moved >= LEAST_MOVED * CASES, strategies
    assert len(strategies) > 1, strategies


@pytest.mark.release
@pytest.mark.parametrize("name", FORMS | LACKING)
def test_a_form_equals_a_recompute_on_spark(spark: SparkSession, name: str) -> None:
    """NULL, NaN and both zeros among the values: what DuckDB takes for equal need not be what Spark does."""
    states = random_path(len(name), batches=3)
    columns = [(column.name, column.type or "") for column in COLUMNS]
    batches = [{ref.split(".")[-1]: rows for ref, rows in states[0].items()}]
    for before, after in pairwise(states):
        gone = {ref: dict.fromkeys(before[ref].keys() - after[ref].keys()) for ref in after}
        batches.append({ref.split(".")[-1]: {**gone[ref], **rows} for ref, rows in after.items()})
    case = Case((FORMS | LACKING)[name], {"t": columns, "u": columns}, batches)
    assert {outcome.strategy for outcome in follow(SparkUnits(lambda: spark), case)} != {"full_refresh"}


def follow(units: SparkUnits, case: Case) -> list[Outcome]:
    """Apply each batch to a table built before it; its rows are those of the query afterwards."""
    outcomes = []
    for before, after in pairwise(case.path):
        outcome = units.run(_unit(case, before, after))
        assert outcome.recomputed is not None
        assert _counted(outcome.rows) == _counted(outcome.recomputed), case.sql
        outcomes.append(outcome)
    return outcomes


def _unit(case: Case, before: LakeSnapshot, after: LakeSnapshot) -> UnitCase:
    nothing, at, model = FixtureRows((), ()), Location("models/m.yml"), case.plan.model
    unique_id = NodeId("unit_test", "shop", "m.random")
    test = RenderedUnitTest(unique_id, "random", "", "", model, (), model.inputs, (), (), Fixture("dict", at), at)
    return UnitCase(test, case.plan, case.schemas, _rows(before), _rows(after), nothing, NOON)


def _rows(snapshot: LakeSnapshot) -> TableRows:
    return {name: {key: tuple(row) for key, row in rows.items()} for name, rows in snapshot.items()}


def _counted(rows: Rows) -> Counter[tuple[object, ...]]:
    return Counter(tuple(_comparable(value) for value in row) for row in rows.rows)


def _comparable(value: object) -> object:
    """A value that is hashable and equal to itself; the last digits of a double depend on the order of addition."""
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, dict):
        return tuple((name, _comparable(field)) for name, field in value.items())
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    return value
