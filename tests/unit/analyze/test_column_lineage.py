"""Column lineage of one query: how origins enter a value, and what decides the rows."""

from __future__ import annotations

import pytest

from sqlmesh_like.analyze.algebra.column_lineage import ColumnLineage, trace
from sqlmesh_like.analyze.text_lineage import trace_text
from sqlmesh_like.compiler import Compiler
from tests.properties.lake import T, U, model, schema

COLUMNS = schema(a="int", s="string", dt="date", d="decimal(10,2)", arr="array<int>")


def traced(sql: str) -> dict[str, ColumnLineage]:
    relation = Compiler({T: COLUMNS, U: COLUMNS}).compile(model(sql)).facts.relation
    assert relation is not None
    return {column.name: column for column in trace(relation)}


def origins(column: ColumnLineage) -> dict[str, str]:
    return {f"{origin.input_id[-1]}.{origin.column}": how for origin, how in column.origins.items()}


def influences(column: ColumnLineage) -> dict[str, str]:
    return {f"{origin.input_id[-1]}.{origin.column}": "+".join(roles) for origin, roles in column.influences.items()}


def test_a_value_is_copied_computed_or_aggregated_through_subqueries() -> None:
    lineage = traced(
        "with c as (select a, d + 1 as e, s from ods.t where dt > date'2024-01-01') "
        "select c.s, sum(e) * 2 as total, count(*) as n, max(u.a) as m, 1 as one "
        "from c join ods.u u on c.a = u.a group by c.s"
    )
    assert origins(lineage["s"]) == {"t.s": "copied"}
    assert origins(lineage["total"]) == {"t.d": "aggregated"}
    assert origins(lineage["m"]) == {"u.a": "aggregated"}
    assert origins(lineage["n"]) == origins(lineage["one"]) == {}
    assert influences(lineage["total"]) == {"t.dt": "filters", "t.a": "joins", "u.a": "joins", "t.s": "groups"}


def test_windows_are_told_from_what_they_are_over() -> None:
    lineage = traced(
        "select s, sum(d) over (partition by a) as w, rank() over (partition by a order by dt) as r from ods.t"
    )
    assert origins(lineage["w"]) == {"t.d": "aggregated", "t.a": "computed"}
    assert origins(lineage["r"]) == {"t.a": "computed", "t.dt": "computed"}


def test_the_branches_of_a_union_are_merged_by_position() -> None:
    lineage = traced("select a, s from ods.t where d > 0 union all select a + 1 as x, s from ods.u")
    assert origins(lineage["a"]) == {"t.a": "copied", "u.a": "computed"}
    assert influences(lineage["a"]) == {"t.d": "filters"}


def test_a_semi_join_decides_rows_and_gives_no_value() -> None:
    lineage = traced("select s from ods.t where exists (select 1 from ods.u where u.a = t.a)")
    assert origins(lineage["s"]) == {"t.s": "copied"}
    assert influences(lineage["s"]) == {"t.a": "joins", "u.a": "joins"}


def test_a_column_keeps_all_its_roles() -> None:
    lineage = traced(
        "select t.a, count(*) as n from (select a from ods.t where a > 0) as t join ods.u on t.a = u.a group by t.a"
    )
    assert influences(lineage["n"]) == {"t.a": "groups+joins+filters", "u.a": "joins"}


def test_every_output_column_has_a_lineage_in_its_place() -> None:
    assert list(traced("select t.*, u.s as other from ods.t join ods.u on t.a = u.a")) == [
        "a", "s", "dt", "d", "arr", "other",
    ]  # fmt: skip


@pytest.mark.parametrize("known", [True, False])
def test_names_of_a_query_outside_the_algebra_are_traced_through_its_text(known: bool) -> None:
    sql = (
        "with c as (select t.a, upper(t.s) as s, t.d from ods.t t limit 10) "
        "select a, s, sum(d) + 1 as total, count(*) as n from c group by a, s"
    )
    lineage = trace_text(model(sql), {T: COLUMNS if known else None})
    assert lineage is not None
    assert {column.name: origins(column) for column in lineage} == {
        "a": {"t.a": "copied"}, "s": {"t.s": "computed"}, "total": {"t.d": "aggregated"}, "n": {},
    }  # fmt: skip
    assert all(column.is_complete for column in lineage)


def test_what_the_text_does_not_tell_is_said_to_be_incomplete() -> None:
    (column,) = trace_text(model("select s from ods.t join ods.u on t.a = u.a limit 1"), {}) or ()
    assert (origins(column), column.is_complete) == ({}, False)
    assert trace_text(model("select * from ods.t limit 1"), {}) is None
