"""INTERSECT ALL and EXCEPT ALL: the counts of equal rows follow both sides (on DuckDB)."""

from __future__ import annotations

import pytest

from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from tests.levels import sample
from tests.properties.lake import T, U, check, compiled, final_rows, schema

COLUMNS = schema(a="int", s="string")
_X, _Y, _NULL = (1, "x"), (2, "x"), (None, None)
PATH: list[LakeSnapshot] = [
    {T: {"1": _X, "2": _X, "3": _X, "4": _NULL, "5": _Y}, U: {"1": _X}},
    {T: {"1": _X, "2": _X, "3": _X, "4": _NULL, "5": _Y}, U: {"1": _X, "2": _X, "3": _NULL, "4": _NULL}},
    {T: {"2": _X, "3": _Y, "4": _NULL, "5": _Y}, U: {"2": _X, "3": _NULL, "4": _Y}},
    {T: {"3": _Y, "4": _NULL, "5": _Y}, U: {}},
    {T: {}, U: {"1": _X}},
    {T: {"1": _X, "2": _X}, U: {"1": _X}},
]
QUERIES = (
    "select a, s from ods.t intersect all select a, s from ods.u",
    "select a from ods.t except all select a from ods.u",
    "select a from ods.t minus all select a from ods.u",
    "select a from (select a from ods.t union all select a from ods.t) as q except all select a from ods.t",
    "select a from ods.t union all select a from ods.u intersect all select a from ods.t",
    "select a, count(*) as n from (select a from ods.t except all select a from ods.u) as q group by a",
)


@pytest.mark.parametrize("partition_by", [(), ("a",)], ids=["by group", "by partition"])
@sample("sql", QUERIES, every=3)
def test_copies_are_counted_on_both_sides(sql: str, partition_by: tuple[str, ...]) -> None:
    plan = compiled(sql, COLUMNS, partition_by)
    assert plan.classification.strategy != "full_refresh", plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


def test_the_smaller_count_is_shared_and_the_rest_is_left() -> None:
    shared = compiled("select a from ods.t intersect all select a from ods.u", COLUMNS)
    left = compiled("select a from ods.t except all select a from ods.u", COLUMNS)
    assert final_rows(shared, COLUMNS, PATH[:2]) == [(1,), (1,), (None,)]
    assert final_rows(left, COLUMNS, PATH[:2]) == [(1,), (2,)]
