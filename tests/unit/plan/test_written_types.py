"""Types of queries that are not turned into algebra: a column is followed to its table, or to a query below."""

from __future__ import annotations

import pytest

from sqlmesh_like.analyze.query_analysis import analyze
from sqlmesh_like.names import Schema
from sqlmesh_like.plan.checks.written_types import WrittenTypes
from sqlmesh_like.render.rendered import InputRef
from tests.properties.lake import T, U, model, schema

COLUMNS = schema(a="int", s="string", d="decimal(10,2)", st="struct<p:int>")
OUTPUTS: dict[str, list[tuple[str, str | None]]] = {
    "select a, a + 1 as b, s || 'x' as c from ods.t limit 3": [("a", "int"), ("b", "int"), ("c", "string")],
    "select a from ods.t union all select d from ods.u limit 3": [("a", "decimal(12,2)")],
    "(select a from ods.t limit 3) union all select s from ods.u": [("a", "string")],
    "select q.x from (select a as x from ods.t limit 3) as q": [("x", "int")],
    "select v.x, v.y from values (1, 'a'), (2L, 'b') as v(x, y) join ods.t on t.a = v.x limit 3": [
        ("x", "bigint"), ("y", "string")],
    "with c as (select a, s from ods.t limit 3) select c.s, c.a * 2L as b from c": [("s", "string"), ("b", "bigint")],
    "select t.st as x from ods.t limit 3": [("x", None)],
}  # fmt: skip


def written(sql: str) -> WrittenTypes | None:
    def schemas(_ref: InputRef) -> Schema | None:
        return COLUMNS

    return WrittenTypes.of(analyze(model(sql), {T: COLUMNS, U: COLUMNS}, {}), schemas)


@pytest.mark.parametrize("sql", OUTPUTS)
def test_the_columns_of_a_query_have_the_types_of_what_they_are_made_of(sql: str) -> None:
    types = written(sql)
    assert types is not None and types.outputs() == OUTPUTS[sql]


def test_branches_without_a_common_type_are_named() -> None:
    types = written("select true as x from ods.t union all select d from ods.u limit 3")
    assert types is not None
    assert ["the column 'x' of UNION" in refusal.message for _, refusal in types.incompatible_set_columns()] == [True]
