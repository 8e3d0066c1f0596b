"""Forms of joins, subqueries and groups: equal to a recompute after each batch of random changes (on DuckDB)."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
import sqlglot
from sqlglot import exp

from sqlmesh_like.analyze.author_text import spark_sql
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.programs.memory_lake import LakeSnapshot
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import ModelConfig
from sqlmesh_like.render.rendered import InputRef
from tests.levels import count, sample
from tests.properties.lake import T, U, check, compiled, final_rows, model, schema
from tests.properties.lake import states as path_of

COLUMNS = schema(a="int", b="int", s="string", f="double")
VALUES = ((None, 0, 1, 2, 3), (None, 0, 1, 2, 3), (None, "", "x", "y"), (None, 0.0, -0.0, 1.5, float("nan")))
PATHS = count(1, 4, 40)
FORMS = {
    "a left join by less": "select t.a, u.b from ods.t left join ods.u on t.a > u.b",
    "a right join by less": "select t.a, u.b from ods.t right join ods.u on t.a > u.b",
    "a full join by less": "select t.a, u.b from ods.t full join ods.u on t.a > u.b",
    "doubles that are equal": "select t.a, u.b from ods.t left join ods.u on t.f = u.f",
    "EXISTS by less": "select a, b from ods.t where exists (select 1 from ods.u where u.a > t.a)",
    "NOT EXISTS by either":
        "select a from ods.t where not exists (select 1 from ods.u where u.a = t.a or u.b > t.b)",
    "NOT IN by less": "select a, b from ods.t where a not in (select b from ods.u where u.a < t.a)",
    "groups of doubles": "select f, count(*) as n, sum(a) as x from ods.t group by f",
    "groups of quotients": "select a / 4 as g, count(distinct b) as n from ods.t group by a / 4",
    "distinct doubles": "select distinct f, s from ods.t",
    "a union of doubles": "select f, a from ods.t union select f, b from ods.u",
    "doubles except doubles": "select f from ods.t except select f from ods.u",
    "doubles that are integers": "select f from ods.t intersect select a from ods.u",
    "IN of groups": "select a, b from ods.t where b in"
                    " (select max(b) from ods.u where u.a = t.a group by s having count(*) > 1)",
    "NOT IN of groups": "select a, b from ods.t where b not in (select max(b) from ods.u where u.a = t.a group by s)",
    "IN of an extremum or not":
        "select a, b from ods.t where b in (select max(b) from ods.u where u.a <=> t.a) or s = 'x'",
    "NOT EXISTS of groups": "select a, b from ods.t where not exists"
                            " (select s from ods.u where u.a = t.a group by s having max(b) > 1)",
    "a count of no group is NULL":
        "select a, (select count(b) from ods.u where u.a = t.a group by u.a having count(*) > 1) as m from ods.t",
    "a question in a question": "select a, b from ods.t where b in (select min(u.b) from ods.u where u.a = t.a"
                                " and u.b in (select x.b from ods.t as x where x.s = u.s) group by u.s)",
    "NOT IN of two columns": "select a, b from ods.t where (a, b) not in (select a, b from ods.u)",
    "NOT IN of two columns or not":
        "select a, b from ods.t where s = 'x' or (a, s) not in (select a, s from ods.u)",
    "correlated NOT IN or not":
        "select a, b from ods.t where s = 'x' or a not in (select b from ods.u where u.s = t.s)",
    "EXISTS by less, shown": "select a, exists (select 1 from ods.u where u.a > t.b) as x from ods.t",
    "NOT IN of doubles": "select a, b from ods.t where f not in (select f from ods.u)",
    "EXISTS behind some rows": "select a, b from ods.t where not exists (select max(a) from ods.u group by s offset 1)",
    "joins in parentheses":
        "select u.a, x.b from (ods.t left join ods.u on t.a = u.a) join ods.u as x on t.b = x.b",
    "joins in parentheses, last":
        "select x.a, k.w from ods.t as x"
        " left join (ods.u join (select b as w from ods.t) as k on u.b = k.w) on x.a = u.a",
    "joins in parentheses as one table":
        "select x, y from (ods.t left join ods.u on t.a = u.a) as d(x, b1, s1, f1, y, b2, s2, f2)",
    "a test in FILTER": "select s, sum(a) filter (where a not in (select b from ods.u)) as x from ods.t group by s",
    "a test in an aggregate":
        "select count(distinct case when exists (select 1 from ods.u where u.a = t.a) then b end) as x from ods.t",
    "groups by a test": "select exists (select 1 from ods.u where u.a = t.a) as e, count(*) as n from ods.t group by 1",
    "a value beside aggregates": "select s as k, sum(a) as n, sum(a) > (select max(a) from ods.u) as big from ods.t"
                                 " group by s having n > 1",
    "ON asks about the kept side": "select t.a, u.b from ods.t left join ods.u on t.a = u.a and t.b in"
                                   " (select b from ods.u as x)",
    "ON asks about the other side": "select t.a, u.b from ods.t left join ods.u on t.a = u.a and u.b not in"
                                    " (select x.a from ods.u as x where x.b > 0)",
    "a value without FROM":
        "select a, (select a where a > 1) as x from ods.t where b in (select 2) or b = (select a)",
    "the largest value below": "select t.a, (select max(u.b) from ods.u where u.a < t.a) as m from ods.t",
    "a count of equal rows below":
        "select t.a, t.b from ods.t where 1 < (select count(*) from ods.u where u.s = t.s and u.a <= t.b)",
    "a sum of other rows, guarded":
        "select t.a, (select count(u.b) + 1 from ods.u where u.a <> t.a and t.b > 1 and u.b < 3) as m from ods.t",
    "as of":
        "select t.a, u.s from ods.t join ods.u on u.a = t.a and u.b = (select max(x.b) from ods.u as x where x.a"
        " = t.a and x.b <= t.b)",
    "equal or above": "select t.a, (select sum(u.b) from ods.u where u.a <=> t.a or u.b > t.b) as m from ods.t",
    "a value below, summed": "select s, sum((select count(*) from ods.u where u.a < t.a)) as n from ods.t group by s",
    "an average of counts":
        "select s, n from (select s, count(*) as n from ods.t group by s) as x where n > (select avg(n) from"
        " (select count(*) as n from ods.u group by s) as y)",
    "VALUES to the left":
        "select v.k, count(t.a) as n from (values ('x', 1), ('y', null), (null, 2)) as v(k, w) left join ods.t"
        " on t.s = v.k group by v.k",
    "VALUES in a union": "select a from ods.t union all select col1 from values (1), (2)",
    "except a constant": "select a from ods.t except select 2",
    "RANGE downwards":
        "select id, count(t.b) as n from range(5, 0, -2) as d left join ods.t on t.a < d.id group by id",
    "RANGE of nothing": "select d.id, t.a from range(0) as d right join ods.t on t.a = d.id",
    "a CTE of one row to the left":
        "with p as (select 2 as lim) select p.lim, t.b from p left join ods.t on t.a = p.lim",
    "a spine":
        "with s as (select explode(sequence(0, 3)) as d) select d, count(t.a) as n, sum(t.b) as b from s left"
        " join ods.t on t.a = d group by d",
    "a spine without matches":
        "select d from (select explode(sequence(0, 3)) as d) as s where d not in (select a from ods.t where a is"
        " not null)",
    "LATERAL rows, all to the left":
        "select t.a, l.b from ods.t left join lateral (select * from ods.u where u.a < t.a) as l on t.b = l.b",
    "LATERAL of a value of both":
        "select t.a, l.x from ods.t, lateral (select u.b + t.b as x from ods.u where u.a > t.a) as l",
    "LATERAL of values":
        "select t.a, l.x, m.y from ods.t, lateral (select t.a + t.b as x) as l, lateral (select x * 2 as y) as m"
        " where y > 2",
    "LATERAL of a condition": "select t.a, l.x from ods.t, lateral (select t.a as x where t.a > 1) as l",
    "LATERAL aggregates":
        "select t.a, l.p from ods.t join lateral (select count(*), sum(u.b) from ods.u where u.a = t.a) as l(p,"
        " q) on true where q > 1",
    "LATERAL first row of all":
        "select t.a, l.b as m from ods.t, lateral (select u.b from ods.u order by u.b limit 1) as l",
    "percentiles downwards":
        "select s, percentile_cont(0.3) within group (order by a desc) as p, percentile_disc(0.5) within group"
        " (order by b) as q from ods.t group by s",
    "a percentile with FILTER":
        "select s, percentile_disc(0.5) within group (order by b desc) filter (where a > 0) as q from ods.t"
        " group by s",
    "percentiles over windows":
        "select a, percentile_disc(0.5) within group (order by b) over (partition by s) as q, median(b) over"
        " (partition by a) as m from ods.t",
    "above the median": "select a, b from ods.t where b > (select median(b) from ods.t)",
    "STACK as a view": "select a, k, v from ods.t lateral view stack(2, 'a', a, 'b', b) s1 as k, v",
    "STACK as columns": "select s, stack(3, 'a', a, 'b', b, 'c') as (k, v) from ods.t",
    "a side of USING": "select y.* from ods.t as x right join (select b as z, a from ods.u) as y using (a)",
    "a side of a full USING": "select x.* from ods.t as x full join (select b as z, a from ods.u) as y using (a)",
    "a star without columns":
        "with q as (select * except (f) from ods.t) select q.* except (a), u.a as w from q join ods.u on q.a ="
        " u.a",
    "HAVING asks by a key":
        "select s, sum(a) as n from ods.t group by s having sum(a) > (select min(u.b) from ods.u where u.s = t.s)",
    "HAVING asks by an aggregate":
        "select s, count(*) as n from ods.t group by s having exists (select 1 from ods.u where u.b < min(t.a))",
    "HAVING asks whether a count is among others":
        "select t.a, count(*) as n from ods.t group by t.a having count(*) in (select u.b from ods.u where u.a = t.a)",
    "IN, shown": "select a, a in (select b from ods.u) as x, a not in (select b from ods.u) as y from ods.t",
    "IN of a list, shown": "select a, a in (1, b) as x, not (b not in (0, null)) as y from ods.t",
    "IN below NOT and OR, shown":
        "select a, not (s = 'x' or a in (select b from ods.u where u.s = t.s)) as x from ods.t",
    "IN of two columns, shown":
        "select (a, s) in (select a, s from ods.u) as x, (a, s) not in (select a, s from ods.u) as y from ods.t",
    "IN, aggregated": "select s, max(a in (select b from ods.u)) as x, bool_and(a not in (select b from ods.u)) as y,"
                      " sum(cast(a in (select b from ods.u) as int)) as n from ods.t group by s",
    "groups by IN": "select a in (select b from ods.u) as x, count(*) as n from ods.t group by 1",
    "IN of an aggregate, shown": "select s, max(a) in (select b from ods.u) as x from ods.t group by s",
    "IN, shown twice below": "select a, a in (select b from ods.u) as x from ods.t union all select b, b not in"
                             " (select a from ods.t) from ods.u",
    "FILTER by IN, and by NOT IN":
        "select s, sum(b) filter (where a in (select b from ods.u)) as x, sum(b) filter (where not (a in (select b"
        " from ods.u))) as y from ods.t group by s",
    "a table in brackets": "select x.a, count(*) as n from ((ods.t as y)) as x where x.b > 0 group by x.a",
    "columns named in brackets": "select p, w from (ods.t as x(p, q, r, w)) as y",
    "joins of brackets": "select t.a, k.n, u.s from ((ods.t) left join (ods.u) on t.a = u.a), ((select a as n from"
                         " ods.u) as k) where k.n = t.b",
    "brackets in a subquery":
        "select t.s, sum(t.a) as n from (ods.t) where exists (select 1 from (ods.u) where u.a = t.a) group by t.s",
    "a window's result again":
        "select a, row_number() over (partition by s order by b) as n, n + 1 as m, m * n as q from ods.t",
    "a window's result over groups again":
        "select s, rank() over (order by sum(a)) as r, r + coalesce(sum(a), 0) as q from ods.t group by s",
    "joined again": "select x.b, y.a from (select t.a, u.b from ods.t left join ods.u on t.a > u.b) as x"
                    " left join ods.t as y on x.a = y.a",
}  # fmt: skip
LACKING = {
    "correlated NOT IN of two columns":
        "select a, b from ods.t where (a, b) not in (select u.a, u.b from ods.u where u.s = t.s)",
    "a NATURAL JOIN by nothing": "select a, z from ods.t natural left join (select b as z from ods.u where b > 2) as v",
    "a key of no grouping set": "select a, s, count(*) as n, grouping_id() as g from ods.t group by a, s"
                                " grouping sets ((s), ())",
    "JSON by a schema":
        "select p.x as x, count(*) as n from (select a, from_json(concat('{\"x\":', a, ',\"y\":[1]}'), 'x int, y"
        " array<int>') as p from ods.t) as e group by p.x",
    "a sum by a text that equals a number": "select t.a, (select sum(u.b) from ods.u where u.s = t.a) as m from ods.t",
    "any value in a window": "select a, b, any_value(s) ignore nulls over (partition by a order by b"
                             " rows between 1 preceding and current row) as x from ods.t",
}  # fmt: skip
"""Forms that DuckDB does not run as they are written; release tests follow them on Spark."""


def random_path(number: int, batches: int = 5) -> list[LakeSnapshot]:
    """States of both tables, each some random changes after the one before; now and then a table is empty."""
    random = Random(number)
    path: list[LakeSnapshot] = [{T: {}, U: {}}]
    for _ in range(batches):
        state = dict(path[-1])
        for table in (T, U):
            rows = {key: row for key, row in state[table].items() if random.random() > 0.2}
            rows |= {str(key): tuple(map(random.choice, VALUES)) for key in range(7) if random.random() < 0.35}
            state[table] = random.choices((rows, path[-1][table], {}), (6, 3, 1))[0]
        path.append(state)
    return path[1:]


def test_joins_in_parentheses_stay_beside_a_view() -> None:
    compiler = Compiler({T: COLUMNS, U: COLUMNS})
    view = replace(model("select a, b from ods.t", name="v"), config=ModelConfig(materialized="view"))
    ref = InputRef(view.unique_id, TableName("dws", "v"), "model")
    compiler.compile(view)
    asked = model("select v.a, u.s from (dws.v join ods.u on v.a = u.a) join ods.u as x on x.a = v.b")
    facts = compiler.compile(replace(asked, inputs=(*asked.inputs, ref))).facts
    assert [join.alias_or_name for join in facts.tree.find_all(exp.Join)] == ["x", "u"]
    bound = spark_sql(facts.tree, lambda _, name: f"here_{name}", from_tree=True)
    read = sorted(table.name for table in sqlglot.parse_one(bound, dialect=SPARK).find_all(exp.Table))
    assert read == ["here_t", "here_u", "here_u"]


@pytest.mark.parametrize("name", LACKING)
def test_a_form_that_duckdb_lacks_is_followed(name: str) -> None:
    classification = compiled(LACKING[name], COLUMNS).classification
    assert classification.strategy != "full_refresh", classification.reasons


@sample("name", FORMS, every=4)
def test_a_form_follows_random_changes(name: str) -> None:
    plan = compiled(FORMS[name], COLUMNS)
    assert plan.classification.strategy != "full_refresh", plan.classification.reasons
    assert [check(plan, COLUMNS, random_path(number)) for number in range(PATHS)]


def test_the_last_value_up_to_tied_rows_is_that_of_the_last_of_them() -> None:
    columns = schema(p="string", o="int", v="int")
    sql = (
        "select o, v, last_value(v) over (partition by p order by o desc) as l, first_value(v) over"
        " (partition by p order by o range between current row and unbounded following) as f from ods.t"
    )
    plan = compiled(sql, columns)
    path = path_of(
        {"1": ("x", 1, 1), "2": ("x", 1, 2), "3": ("x", 2, 3), "4": (None, None, 4)},
        {"3": ("x", 1, 3), "5": ("x", 1, None)},
    )
    assert check(plan, columns, path)
    assert final_rows(plan, columns, path[:1]) == [(1, 1, 2, 1), (1, 2, 2, 1), (2, 3, 3, 3), (None, 4, 4, 4)]
    assert final_rows(plan, columns, path) == [(1, 1, None, 1), (1, 2, None, 1), (1, 3, None, 1), (1, None, None, 1),
                                               (None, 4, 4, 4)]  # fmt: skip


def test_the_last_known_value_up_to_tied_rows_is_theirs_or_that_of_rows_before() -> None:
    columns = schema(p="string", o="int", v="int")
    sql = "select o, last_value(v, true) over (partition by p order by o) as l from ods.t"
    plan = compiled(sql, columns)
    path = path_of(
        {"1": ("x", 1, 1), "2": ("x", 1, None), "3": ("x", 2, None), "4": ("x", 3, 7), "5": ("x", 3, None)},
        {"1": ("x", 1, None), "6": ("x", 0, 9)},
        {"4": None},
    )
    assert [final_rows(plan, columns, path[:n]) for n in (1, 2, 3)] == [
        [(1, 1), (1, 1), (2, 1), (3, 7), (3, 7)], [(0, 9), (1, 9), (1, 9), (2, 9), (3, 7), (3, 7)],
        [(0, 9), (1, 9), (1, 9), (2, 9), (3, 9)],
    ]  # fmt: skip
    assert check(plan, columns, path)


def test_reasons_show_windows_of_time_as_they_are_written() -> None:
    sql = (
        "select window(ts, '1 hour').start as s, count(*) as n, rank() over (partition by window(ts, '1 hour').start"
        " order by count(*)) as r from ods.t group by window(ts, '1 hour'), v"
    )
    reasons = compiled(sql, schema(ts="timestamp", v="int")).classification.reasons
    assert [reason.message for reason in reasons if reason.rule == "WIN001"] == [
        "RANK() OVER (PARTITION BY WINDOW(ts, '1 hour').start ORDER BY COUNT(*))"
    ]
