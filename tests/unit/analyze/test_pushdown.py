"""Where a condition of WHERE ends up: at the join it belongs to, and never below one that fills with NULLs."""

from __future__ import annotations

import pytest

from sqlmesh_like.analyze.algebra.relation import Filter, Join, Relation, walk
from tests.properties.lake import T, U, check, compiled, schema

COLUMNS = schema(a="int", s="string", dt="date")


def _relation(sql: str) -> Relation:
    relation = compiled(sql, COLUMNS).facts.relation
    assert relation is not None
    return relation


def _joins(sql: str) -> list[Join]:
    return [node for node in walk(_relation(sql)) if isinstance(node, Join)]


def _filters(sql: str) -> list[str]:
    return [node.condition.sql("spark") for node in walk(_relation(sql)) if isinstance(node, Filter)]


def test_a_join_by_comma_has_its_equalities() -> None:
    (join,) = _joins("select t.a from ods.t, ods.u where t.a = u.a and t.s > u.s")
    assert [(pair.left.sql(), pair.right.sql()) for pair in join.pairs] == [('"t.a"', '"u.a"')]
    assert not _filters("select t.a from ods.t, ods.u where t.a = u.a and t.s > u.s")


def test_a_condition_on_one_side_goes_to_that_side() -> None:
    assert _filters("select t.a from ods.t join ods.u on t.a = u.a where u.s = 'x' and t.s = 'y' and u.dt is null") == [
        "`t.s` = 'y'", "`u.s` = 'x' AND `u.dt` IS NULL",
    ]  # fmt: skip


def test_a_semi_join_looks_its_keys_up_among_joined_rows_only() -> None:
    sql = "select x.a from ods.t as x, ods.u as y where exists (select 1 from ods.u where u.a = x.a) and x.a = y.a"
    outer, inner = _joins(sql)
    assert outer.kind == "semi" and outer.left is inner and inner.pairs


@pytest.mark.parametrize(
    ("join", "kept"), [("left join", "u.a IS NULL"), ("right join", "t.a IS NULL"), ("full join", "t.a IS NULL")]
)
def test_the_side_that_a_join_fills_with_nulls_is_filtered_after_it(join: str, kept: str) -> None:
    sql = f"select t.s, u.s as r from ods.t {join} ods.u on t.a = u.a where {kept}"
    relation = _relation(sql)
    top = next(node for node in walk(relation) if isinstance(node, Filter | Join))
    assert isinstance(top, Filter)
    here, there = {"1": (1, "x", None), "2": (2, "y", None)}, {"1": (1, "r", None)}
    path = [{T: here, U: there}, {T: here, U: {"7": (2, "r", None)}}, {T: {}, U: there}]
    check(compiled(sql, COLUMNS), COLUMNS, path)


def test_a_condition_that_reads_one_kept_side_goes_below_an_outer_join() -> None:
    sql = "select t.s, u.s as r from ods.t left join ods.u on t.a = u.a where t.s = 'x'"
    (join,) = _joins(sql)
    assert isinstance(join.left, Filter)
    here, there = {"1": (1, "x", None), "2": (2, "y", None)}, {"1": (1, "r", None)}
    path = [{T: here, U: there}, {T: {**here, "2": (2, "x", None)}, U: {}}, {T: here, U: there}]
    assert len(check(compiled(sql, COLUMNS), COLUMNS, path)) == 2


def test_having_stays_above_its_groups() -> None:
    assert _filters("select s, count(*) as n from ods.t group by s having count(*) > 1") == ["`_sml_having`"]


def test_a_cte_that_is_read_twice_stays_one_node() -> None:
    sql = (
        "with c as (select t.s, count(*) as n from ods.t, ods.u where t.a = u.a group by t.s)"
        " select x.s, y.n from c as x, c as y where x.s = y.s and x.n > 1"
    )
    groups = [node for node in walk(_relation(sql)) if type(node).__name__ == "Aggregate"]
    assert len(groups) == 2 and groups[0] is groups[1]


def test_a_condition_that_reads_the_clock_stays_a_filter_of_its_own() -> None:
    sql = "select t.a from ods.t, ods.u where t.a = u.a and t.dt > current_date and t.s = 'x'"
    assert _filters(sql) == ["`t.dt` > CURRENT_DATE", "`t.s` = 'x'"]
