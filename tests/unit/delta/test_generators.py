"""EXPLODE and its kin: equal to a recompute after each batch, empty arrays and NULL elements included (on DuckDB)."""

from __future__ import annotations

import pytest

from sqlmesh_like.analyze.algebra.lineage import split_columns
from sqlmesh_like.analyze.algebra.relation import used_columns
from sqlmesh_like.errors import SqlError
from sqlmesh_like.names import KEY
from tests.levels import sample
from tests.properties.lake import T, check, compiled, final_rows, schema, states

COLUMNS = schema(
    id="int", a="array<int>", st="array<struct<p:int,q:string>>", s="string", one="struct<p:int,q:string>", x="int",
    st2="struct<x:int>",
)  # fmt: skip
_KEY = {"p": 1, "q": "k"}
PATH = states(
    {
        "1": (1, [10, 20, None], [{"p": 1, "q": "u"}, None, {"p": 2, "q": None}], "a,b", _KEY, 1, {"x": 7}),
        "2": (2, [], [], "", None, 2, None),
        "3": (3, None, None, None, {"p": None, "q": None}, None, {"x": None}),
    },
    {"1": (1, [20, 20], [{"p": 2, "q": "u"}], "b,a,c", _KEY, 1, None), "2": (2, [None], [None], ",", None, 2, None)},
    {"3": (3, [1], [{"p": 1, "q": "z"}], "x", None, 3, None), "1": None},
    {"2": (2, [], [], "", None, 2, None), "4": (None, [10, 5], None, "a", {"p": 3, "q": None}, 0, {"x": 1})},
    {"2": None, "3": None, "4": None},
    {"1": (1, [1], None, "a", None, 1, None)},
)

BY_ROW = {
    "explode": "select id, explode(a) as e from ods.t",
    "explode_outer": "select id, explode_outer(a) as e from ods.t",
    "posexplode": "select id, posexplode(a) as (p, e) from ods.t",
    "posexplode_outer": "select id, posexplode_outer(a) as (p, e) from ods.t",
    "names that Spark gives": "select id, posexplode(a) from ods.t",
    "a view": "select id, s, e from ods.t lateral view explode(a) v as e",
    "an outer view": "select id, e from ods.t lateral view outer explode(a) v as e",
    "a view with positions": "select id, v.* from ods.t lateral view outer posexplode(a) v as p, e",
    "a view without a name": "select id, e from ods.t lateral view explode(split(s, ',')) as e",
    "structs": "select id, v.p, q from ods.t lateral view inline(st) v",
    "structs or NULL": "select id, y, z from ods.t lateral view outer inline(st) v as y, z",
    "fields of an element": "select id, e.p as f, v.e.q as g from ods.t lateral view explode(st) v as e",
    "a field of a column": "select id, one.p as f, t.one.q as g from ods.t where one.q is not null",
    "a view named like its column": "select id, e.p as f from ods.t lateral view explode(st) e as e",
    "a field named like a column": "select t.x as y, st2.x as z, e from ods.t lateral view explode(a) v as e",
    "a view over a view": "select id, y, f from ods.t lateral view explode(a) v as y"
                          " lateral view explode(array(y, y + 1, y)) w as f",
    "a lateral join": "select id, f from ods.t, lateral explode(a) as v(f) where f > 5",
    "a left lateral join": "select id, f from ods.t left join lateral explode(a) as v(f)",
    "a view over a join": "select t.id, f, u.s from ods.t join ods.t as u on t.id = u.x lateral view explode(t.a) v"
                          " as f",
    "a join of exploded rows": "select q.f, u.s from (select explode(a) as f from ods.t) as q join ods.t as u"
                               " on q.f = u.x",
    "a name of both": "select t.x, v.x as y from ods.t lateral view explode(a) v as x",
}  # fmt: skip
GROUPED = {
    "merged": ("select f, count(*) as n, sum(id) as i from ods.t lateral view explode(split(s, ',')) v as f group by f",
               "aggregate_merge"),
    "distinct": ("select distinct explode(a) as f from ods.t", "group_recompute"),
    "counted": ("select f, count(distinct id) as n from ods.t lateral view explode(a) v as f group by f",
                "group_recompute"),
    "numbered": ("select id, row_number() over (partition by f order by id) as r from ods.t lateral view explode(a) v"
                 " as f", "group_recompute"),
}  # fmt: skip


@sample("name", BY_ROW, every=4)
def test_elements_follow_their_row(name: str) -> None:
    plan = compiled(BY_ROW[name], COLUMNS)
    assert plan.classification.strategy == "row_based", plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


@sample("name", GROUPED, every=2)
def test_groups_of_elements_follow_their_rows(name: str) -> None:
    sql, strategy = GROUPED[name]
    plan = compiled(sql, COLUMNS)
    assert plan.classification.strategy == strategy, plan.classification.reasons
    assert len(check(plan, COLUMNS, PATH)) == len(PATH) - 1


def test_an_empty_array_is_no_row_and_with_outer_one_without_a_position() -> None:
    plan = compiled("select id, posexplode(a) as (p, e) from ods.t", COLUMNS)
    assert final_rows(plan, COLUMNS, PATH[:1]) == [(1, 0, 10), (1, 1, 20), (1, 2, None)]
    outer = compiled("select id, p, e from ods.t lateral view outer posexplode(a) v as p, e", COLUMNS)
    every = [(1, 0, 10), (1, 1, 20), (1, 2, None), (2, None, None), (3, None, None)]
    assert final_rows(outer, COLUMNS, PATH[:1]) == every


def test_only_elements_that_changed_are_written() -> None:
    plan = compiled("select id, explode(a) as e from ods.t", COLUMNS)
    rest = PATH[0][T]["1"][2:]
    (actions,) = check(plan, COLUMNS, states({"1": (1, [1, 2, 3], *rest)}, {"1": (1, [1, 5], *rest)}))
    assert (actions.upserts, actions.deletes) == (1, 1)


def test_partitions_are_those_of_columns_and_never_of_elements() -> None:
    sql = "select id, f, count(distinct x) as n from ods.t lateral view explode(a) v as f group by id, f"
    plan = compiled(sql, COLUMNS, ["id"])
    assert plan.classification.strategy == "partition_rescan"
    assert check(plan, COLUMNS, PATH)
    assert plan.facts.relation is not None
    assert split_columns(plan.facts.relation) == {"id": {T: "id"}}
    assert used_columns(plan.facts.relation) == {T: ("id", "a", "x")}
    assert compiled(sql, COLUMNS, ["f"]).classification.strategy == "group_recompute"


def test_the_array_counts_as_used_where_only_the_number_of_rows_depends_on_it() -> None:
    plan = compiled("select id from ods.t lateral view explode(a) v as e", COLUMNS)
    assert plan.facts.relation is not None
    assert used_columns(plan.facts.relation) == {T: ("id", "a")}
    assert check(plan, COLUMNS, PATH)
    assert plan.table.build is not None and KEY in plan.table.build.sql("spark")


def test_a_star_ends_with_the_columns_of_the_views() -> None:
    sql = "select * from ods.t lateral view posexplode(a) v lateral view explode(a) as e"
    shown = [column.name for column in compiled(sql, COLUMNS).facts.schema or ()]
    assert shown == [*[column.name for column in COLUMNS], "pos", "col", "e"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select id, f from ods.t lateral view explode(a) v as f, g", "1:38: EXPLODE(a) has 1 columns and 2 names"),
        ("select v.zz from ods.t lateral view explode(a) v as f", "1:8: unknown column 'zz' of 'v'"),
        ("select x from ods.t lateral view explode(a) v as x", "1:8: the column 'x' is ambiguous"),
        ("select f from ods.t lateral view explode(zz) v as f", "1:42: unknown column 'zz'"),
    ],
)
def test_a_mistake_is_told_with_its_place(sql: str, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql, COLUMNS)
    assert str(caught.value).startswith(f"models/m.sql:{message}")
