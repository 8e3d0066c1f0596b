"""What each form of SQL is classified as: strategy, rules, and where in the model's own file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlmesh_like.classify.rules import RULES
from sqlmesh_like.classify.strategy import Classification, classify
from sqlmesh_like.compiler import Compiler
from sqlmesh_like.render.rendered import SourceMap
from tests.properties.lake import T, compiled, model, schema

COLUMNS = schema(
    a="int", d="decimal(10,2)", s="string", dt="date", b="boolean", f="double", arr="array<string>", m="map<string,int>"
)

FULL = {
    "select a from ods.t tablesample (10 percent)": ("QRY009", 15),
    "select a from ods.t version as of 3": ("QRY009", 15),
    "select a from ods.t limit 3": ("QRY003", 21),
    "(select a from ods.t) limit 3": ("QRY003", 23),
    "select a from (select a from ods.t limit 3) as x": ("QRY003", 36),
    "with c as (select a from ods.t limit 3) select a from c": ("QRY003", 32),
    "select a from ods.t union all select a from ods.u limit 1": ("QRY003", 51),
    "(select a from ods.t union all select a from ods.u) limit 1": ("QRY003", 53),
    "select a from ods.t offset 3": ("QRY003", 21),
    "select a from ods.t order by a limit 1 + 2": ("QRY003", 32),
    "select a from ods.t order by a limit 0": ("QRY003", 32),
    "select a from ods.t order by arr limit 3": ("QRY003", 34),
    "select distinct a from ods.t order by s limit 3": ("QRY003", 41),
    "select a from ods.t order by sum(a) limit 3": ("QRY003", 37),
    "select s, max(a) as a from ods.t group by s order by sum(a) limit 3": ("QRY003", 58),
    "select a from ods.t order by rank() over (partition by s order by a) limit 3": ("QRY003", 30),
    "select s, stddev(f) as d from ods.t group by s order by d limit 3": ("AGG007", 11),
    "select s, stddev(distinct a) as d from ods.t group by s having count(*) > 1": ("AGG007", 11),
    "select a, (select u.s from ods.u where u.a = t.a) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) from ods.u where u.f = t.f) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) from ods.u where t.a = 1) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) from ods.u where u.a = t.a limit 1) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) from ods.u where u.a = t.a having max(u.a) > 1) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) from ods.u where u.a = t.a group by u.s) as m from ods.t": ("QRY012", 12),
    "select a from ods.t where a in (select max(u.a) from ods.u where u.a = t.d group by u.s)": ("QRY005", 27),
    "select a, (select max(u.a + t.a) from ods.u where u.a = t.a) as m from ods.t": ("QRY012", 12),
    "select a, (select max(u.a) + t.a from ods.u where u.a = t.a) as m from ods.t": ("QRY012", 12),
    "select a, (select collect_set(u.s) from ods.u where u.a = t.a) as m from ods.t": ("QRY012", 12),
    "select a, coalesce(a in (select a from ods.u), true) as x from ods.t": ("QRY005", 20),
    "select a from ods.t where (a in (select a from ods.u)) is null": ("QRY005", 28),
    "select a from ods.t where a = (select u.a from ods.u where u.s = t.s)": ("QRY012", 32),
    "select s as a, count(*) as n from ods.t group by s having a > 1": ("QRY002", 59),
    "select f from ods.t intersect all select f from ods.u": ("KEY002", 21),
    "select a from ods.t except all select a from ods.u limit 1": ("QRY003", 52),
    "with recursive c as (select a from ods.t union all select a from c) select a from c": ("QRY009", 16),
    "select a from ods.t where a in (select a from ods.u where u.s = t.s limit 2)": ("QRY005", 27),
    "select a from ods.t where exists (select max(u.a) from ods.u where u.a = t.a)": ("QRY005", 27),
    "select t.a from ods.t left join ods.u join ods.u as x on u.a = x.a on t.a = u.a": ("QRY009", 33),
    "select count(*) as n from ods.t join ods.t using (s)": ("QRY009", 38),
    "select s, sum(distinct f) as n from ods.t group by s having count(*) > 1": ("AGG007", 11),
    "select sum(n) as n from (select s, sum(f) as n from ods.t group by s) as q": ("AGG007", 36),
    "select s, sum(a) over (partition by s ROWS between unbounded preceding and current row) as x from ods.t":
        ("QRY006", 11),
    "select s, last_value(a) over (partition by s order by a range between 1 preceding and 1 following) x from ods.t":
        ("QRY006", 11),
    "select s, nth_value(a, 2) over (partition by s order by dt) as x from ods.t": ("QRY006", 11),
    "select s, first_value(a, true) over (partition by s order by dt) as x from ods.t": ("QRY006", 11),
    "select x from ods.t lateral view json_tuple(s, 'a') e as x": ("QRY007", 21),
    "select explode(arr) as x, explode(arr) as y from ods.t": ("QRY007", 27),
    "select explode(arr) as x, count(*) as n from ods.t group by arr": ("QRY007", 8),
    "select a, explode(arr) as x, rank() over (partition by s order by a) as r from ods.t": ("QRY007", 11),
    "select x from ods.t left join lateral explode(arr) as v(x) on a > 0": ("QRY007", 31),
    "select explode(m) as (k, v) from ods.t": ("TYP002", 8),
    "select k from ods.t lateral view explode(m) e as k, v": ("TYP002", 34),
    "select x from ods.t lateral view explode(my_udf(s)) e as x": ("FUN001", 42),
    "select x from ods.t lateral view explode(array(a, b)) e as x": ("TYP001", 34),
    "select x from ods.t lateral view inline(arr) e as x": ("TYP001", 34),
    "select a from ods.t lateral view explode(arr) t as x": ("QRY009", 34),
    "select a from ods.unknown": ("QRY008", 15),
    "select a from ods.t cluster by a": ("QRY009", 21),
    "select sum(a) over (w order by a) as x from ods.t window w as (partition by s)": ("QRY006", 8),
    "select a + 1 as x, sum(x) as y from ods.t group by a": ("QRY009", 24),
    "select sum(a) as x, max(x) as y from ods.t": ("QRY009", 25),
    "select count(t.*) as n from ods.t as t": ("QRY009", 14),
    "select 1 + a as x, count(*) as n from ods.t group by a + 1": ("QRY009", 12),
    "select 1 as a, count(*) as n from ods.t group by all": ("QRY010", None),
    "select a, my_udf(a) as r from ods.t": ("FUN001", 11),
    "select a, rand() as r from ods.t": ("FUN002", 11),
    "select a, uuid() as r from ods.t": ("FUN002", 11),
    "select s, count(distinct rand()) as n from ods.t group by s": ("FUN002", 26),
    "select a, current_timezone() as r from ods.t": ("FUN001", 11),
    "select a from ods.t where s = current_user()": ("FUN001", 31),
    "select a from ods.t union all select b from ods.t": ("TYP001", 8),
    "select null as a from ods.t union all select null as a from ods.t": ("TYP001", 16),
    "select arr from ods.t union all select array('1') as arr from ods.t where a > 0 union all select s from ods.t":
        ("TYP001", 8),
    "select a, m from ods.t": ("TYP002", None),
    "select s, mode(a) as n from ods.t group by s": ("AGG006", 11),
    "select s, collect_list(distinct a) as n from ods.t group by s": ("AGG006", 11),
    "select distinct s, arr from ods.t": ("KEY002", None),
}  # fmt: skip


@pytest.mark.checklist(64)
@pytest.mark.parametrize("sql", FULL)
def test_an_unsupported_form_is_a_full_refresh_that_says_which_and_where(sql: str) -> None:
    classification = compiled(sql, COLUMNS, ["s"] if " s," in sql else []).classification
    rule, column = FULL[sql]
    first = classification.reasons[0]
    assert (classification.strategy, first.rule, first.column) == ("full_refresh", rule, column)


INCREMENTAL = {
    "select s, count(*) as n from ods.t group by s having exists (select 1 from ods.u where u.s = t.s)":
        "group_recompute",
    "select s, count(*) as n from ods.t group by s having count(*) > (select count(*) from ods.u where u.s = t.s)":
        "group_recompute",
    "select a, (select max(u.s) from ods.u where u.a > t.a) as m from ods.t": "group_recompute",
    "select a, (select max(u.a) from ods.u where u.s = t.a) as m from ods.t": "group_recompute",
    "select a, one from ods.t join lateral (select 1 as one) as l on true": "row_based",
    "select u.s from ods.t join (select * except (m) from ods.u) as u using (a)": "row_based",
    "select u.* from ods.t join (select a, s from ods.u) as u using (a)": "row_based",
    "select s, avg(cast(a as bigint)) as n from ods.t group by s having count(*) > 1": "group_recompute",
    "select a, s, count(*) as n, 1 as one from ods.t group by all": "aggregate_merge",
    "select count(*) as n from ods.t group by all": "aggregate_merge",
    "select dt, z from ods.t natural join (select s, count(*) as z from ods.u group by s) as u": "group_recompute",
    "select a, sum(a) over w as x from ods.t window w as (partition by s), unread as (order by a)": "group_recompute",
    "select a, s like any ('x%', 'y') as x from ods.t where s not like all ('a%', 'b%')": "row_based",
    "select a, d from ods.t union all select d, null from ods.u union all select s, a from ods.t": "row_based",
    "select a, s from ods.t where a > 0": "row_based",
    "select a as x, x + 1 as y from ods.t": "row_based",
    "select s from (select s, a / stddev(d) over (partition by s) as z from ods.t) as q where z > 3": "group_recompute",
    "select trunc(dt, 'MM') as m, sum(sum(a)) over (partition by year(trunc(dt, 'MM'))) as y from ods.t"
    " group by trunc(dt, 'MM')": "group_recompute",
    "select t.a from ods.t join ods.u on t.a = u.a and t.s in (select s from ods.u as v)": "group_recompute",
    "select sum(a) as x, x + 1 as y from ods.t": "aggregate_merge",
    "select t.a from ods.t left join ods.u on t.a > u.a": "group_recompute",
    "select t.a from ods.t left join ods.u on t.a = u.s": "group_recompute",
    "select t.a from ods.t left join ods.u on t.f = u.f": "group_recompute",
    "select t.a from ods.t left join ods.u on t.a = u.d": "group_recompute",
    "select t.a from ods.t where s in (select a from ods.u)": "group_recompute",
    "select a from ods.t where dt in (select cast(dt as timestamp) from ods.u)": "group_recompute",
    "select a from ods.t where (a, s) not in (select a, s from ods.u)": "group_recompute",
    "select a from ods.t where a not in (select d from ods.u)": "group_recompute",
    "select a from ods.t where b or f in (select f from ods.u)": "group_recompute",
    "select a from ods.t where a > 0 or exists (select 1 from ods.u where u.a > t.a)": "group_recompute",
    "select x.b from (select b from ods.t) as x natural join (select a from ods.u) as y": "row_based",
    "select s, (select max(a) from ods.u) as m, count(*) as n from ods.t group by s": "group_recompute",
    "with c(x) as (select a from ods.t) select y from (select x from c) as d(y)": "row_based",
    "select a, u.s from ods.t full join ods.u using (a)": "group_recompute",
    "select y.a from ods.t as x natural right join (select a from ods.u) as y": "group_recompute",
    "select a as x from (select a from ods.t where b) as q order by a": "row_based",
    "with c as (select a from ods.t) select a from c union all select a from c": "row_based",
    "select date_format(dt, 'yyyyMM') as month, date_trunc('month', dt) as at from ods.t": "row_based",
    "select a, count(*) as n from ods.t group by a": "aggregate_merge",
    "select x, count(*) as n from ods.t lateral view explode(arr) e as x group by x": "aggregate_merge",
    "select a, explode(split(s, ',')) as x from ods.t": "row_based",
    "select a, x from ods.t, lateral explode(arr) as e(x)": "row_based",
    "select a, count(*) as n from ods.t group by a order by n": "aggregate_merge",
    "select s from ods.t group by s": "aggregate_merge",
    "select s, bool_and(b) as x, any(b) as y, count_if(a > 0) filter (where b) as z from ods.t group by s":
        "aggregate_merge",
    "select s, max_by(a, dt) filter (where b) as x, any_value(arr) as y, last(a, true) as z from ods.t group by s":
        "aggregate_merge",
    "select (a) as x, count(*) as n from ods.t group by (a)": "aggregate_merge",
    "select A, Count(1) as N from ods.T as X group by x.a": "aggregate_merge",
    "select s as k, sum(a) + 1 as n from ods.t group by k": "aggregate_merge",
    "select sum(case when b then d else 0 end) as n from ods.t": "aggregate_merge",
    "select sum(coalesce(d, 0)) filter (where b) as n from ods.t": "aggregate_merge",
    "select count(*) as n, sum(d) as x, avg(a) as y, min(s) as z, max(dt) as w from ods.t": "aggregate_merge",
    "select a from ods.t join ods.u using (a)": "row_based",
    "select t.a, u.a as b from ods.t, ods.u where t.a < u.a": "row_based",
    "select x.a, y.s from ods.t as x join ods.t as y on x.a = y.a join ods.u as z on z.a <=> y.a": "row_based",
    "select u.s, sum(t.d) as n from ods.t join ods.u on t.a = u.a group by u.s": "aggregate_merge",
    "select a from ods.t where a > (select avg(a) from ods.u)": "group_recompute",
    "select a, (select max(a) from ods.u) as m from ods.t": "group_recompute",
    "select a from ods.t where a = (select max(u.a) from ods.u where u.s = t.s)": "group_recompute",
    "select a, (select count(*) from ods.u where u.s <=> t.s and t.b) as n from ods.t": "group_recompute",
    "select u.s, sum(t.d) as n from ods.t left join ods.u on t.a = u.a group by u.s": "aggregate_merge",
    "select n, count(*) as m from (select s, count(*) as n from ods.t group by s) as q group by n": "aggregate_merge",
    "select a from ods.t qualify row_number() over (order by a) = 1": "group_recompute",
    "select rank() over (partition by s order by a) as x, rank() over (partition by a order by s) as y from ods.t":
        "group_recompute",
    "select s, count(*) as n, count(*) over () as k from ods.t group by s": "group_recompute",
    "select a from (select a from ods.t order by a limit 3) as x": "group_recompute",
    "select a from ods.t order by a limit 3 offset 3": "group_recompute",
    "select a from ods.t where exists (select 1 from ods.u)": "group_recompute",
    "select a from ods.t where b or not exists (select s from ods.u group by s having count(*) > 1)": "group_recompute",
    "select a from ods.t where exists (select max(a) as m from ods.u where u.s = t.s group by b)": "group_recompute",
    "select s, count(*) as n from ods.t group by s having s in (select s from ods.u)": "group_recompute",
    "select a from ods.t where a not in (select a from ods.u where u.s = t.s)": "group_recompute",
    "select a from ods.t where b or a in (select a from ods.u where u.s = t.s)": "group_recompute",
}  # fmt: skip


@pytest.mark.checklist(64)
@pytest.mark.parametrize("sql", INCREMENTAL)
def test_a_proven_form_is_incremental(sql: str) -> None:
    assert compiled(sql, COLUMNS).classification.strategy == INCREMENTAL[sql]


OVER_GROUPS = "select s, max(n) as n from (select s, a, count(*) as n from ods.t group by s, a) as q group by s"
RECOMPUTED = {
    "select s, count(distinct a) as n from ods.t group by s": {"AGG002"},
    "select s, sum(f) as n from ods.t group by s": {"AGG003"},
    "select s, sum(element_at(from_json(s, schema_of_json('[1]')), 1)) as n from ods.t group by s": {"AGG004"},
    "select s, stddev(f) as n from ods.t group by s": {"AGG005"},
    "select s, collect_list(a) as n from ods.t group by s": {"AGG008"},
    "select s, max_by(a, f) as n from ods.t group by s": {"AGG008"},
    "select s, bit_xor(a) as n, percentile_cont(0.5) within group (order by a) as m from ods.t group by s": {"AGG005"},
    "select s, n, collect_set(a) as r from (select s, max_by(a, dt) as n, max(a) as a from ods.t group by s) as q"
    " group by s, n": {"AGG008", "AGG009", "NST001"},
    "select distinct s, a from ods.t": {"DST001"},
    "select s, rank() over (partition by s order by a) as x from ods.t": {"WIN001"},
    OVER_GROUPS: {"NST001"},
    "select s, count(*) as n from ods.t group by s having count(*) > 1": {"NST001"},
    "select s from ods.t union select s from ods.u": {"DST001"},
    "select s from ods.t except select s from ods.u": {"DST001", "JOI002"},
    "select s from ods.t intersect select s from ods.u": {"DST001", "JOI002"},
    "select s from ods.t except all select s from ods.u": {"SET001", "JOI002"},
    "select s from ods.t intersect all select s from ods.u": {"SET001", "JOI002"},
    "select s from ods.t where s in (select s from ods.u)": {"JOI002"},
    "select t.s from ods.t where not exists (select 1 from ods.u where u.s = t.s)": {"JOI002"},
    "select t.s from ods.t left join ods.u on t.s = u.s and u.a > 0": {"JOI002"},
    "select s, a from ods.t qualify rank() over (partition by s order by a) = 2": {"WIN001"},
    "select s, row_number() over (partition by s order by a) as n from ods.t": {"WIN001", "WIN002"},
}


@pytest.mark.checklist(63, 64)
@pytest.mark.parametrize("sql", RECOMPUTED)
def test_what_needs_whole_groups_is_rescanned_by_partition_and_recomputed_by_group_without(sql: str) -> None:
    by_partition = compiled(sql, COLUMNS, ["s"]).classification
    assert by_partition.strategy == "partition_rescan"
    assert {reason.rule for reason in by_partition.reasons} == {*RECOMPUTED[sql], "PAR001"}
    by_group = compiled(sql, COLUMNS).classification
    # An aggregate that can be merged is, whatever it is over.
    wanted = ("aggregate_merge", "MRG001") if sql == OVER_GROUPS else ("group_recompute", "GRP001")
    assert (by_group.strategy, {reason.rule for reason in by_group.reasons}) == (
        wanted[0],
        {*RECOMPUTED[sql], wanted[1]},
    )


@pytest.mark.parametrize(
    "sql",
    [
        "select upper(s) as s, count(distinct a) as n from ods.t group by 1",
        "select s, row_number() over (partition by upper(s) order by a) as x from ods.t",
        "select max(s) as s, count(distinct a) as n from ods.t",
        "select s, count(distinct a) as n from ods.t group by s union all select upper(s) as s, count(distinct a) as n"
        " from ods.t group by upper(s)",
        "select u.s from ods.t left join ods.u on t.s = u.s",
        "select coalesce(t.s, u.s) as s from ods.t full join ods.u on t.s = u.s",
        "select t.s from ods.t left join ods.u on t.a = u.a",
    ],
)
def test_a_partition_that_is_not_copied_through_the_query_is_recomputed_by_group(sql: str) -> None:
    classification = compiled(sql, COLUMNS, ["s"]).classification
    assert (classification.strategy, classification.reasons[-2].rule) == ("group_recompute", "PAR002")


CLOCKED = {
    "select a from ods.t where dt < current_date": ("row_based", "CLK002", 32),
    "select a from ods.t where current_date() > dt": ("row_based", "CLK002", 27),
    "select a from ods.t where current_date > dt and a > 0": ("row_based", "CLK002", 27),
    "select a from ods.t where unix_timestamp() > a": ("row_based", "CLK002", 27),
    "select s, count(*) as n from ods.t where dt = curdate() group by s": ("aggregate_merge", "CLK002", 47),
    "select t.a from ods.t left join ods.u on t.a = u.a and u.dt > now()": ("group_recompute", "CLK002", 63),
    "select a, now() as r from ods.t": ("row_based", "CLK001", 11),
    "select a, unix_timestamp() as r from ods.t": ("row_based", "CLK001", 11),
    "select t.a from ods.t left join ods.u on t.a = u.a and t.dt > now()": ("group_recompute", "CLK001", 63),
    "select s, count(distinct case when dt < current_date then a end) as n from ods.t group by s":
        ("group_recompute", "CLK001", 41),
}  # fmt: skip


@pytest.mark.parametrize("sql", CLOCKED)
def test_a_clock_is_followed_in_filters_and_pins_what_reads_it_elsewhere(sql: str) -> None:
    classification = compiled(sql, COLUMNS).classification
    assert (classification.strategy, classification.reasons[-1].rule, classification.reasons[-1].column) == CLOCKED[sql]


def test_a_session_that_changes_the_meaning_of_sql_is_not_followed_and_one_that_changes_functions_is() -> None:
    facts = compiled("select s, sum(a) as n from ods.t group by s", COLUMNS).facts

    def under(**session: str) -> Classification:
        settings = {f"spark.sql.{name.replace('__', '.')}": value for name, value in session.items()}
        return classify(replace(facts, model=replace(facts.model, session=settings)))

    assert under(legacy__timeParserPolicy="LEGACY", mapKeyDedupPolicy="LAST_WIN") == classify(facts)
    refused = under(legacy__timeParserPolicy="LEGACY", caseSensitive="true")
    assert refused.strategy == "full_refresh"
    assert [(r.rule, r.message) for r in refused.reasons] == [("CFG007", "spark.sql.caseSensitive")]


def test_partitions_that_rows_cross_the_clock_in_are_recomputed_by_group() -> None:
    plan = compiled("select s, count(distinct a) as n from ods.t where dt < now() group by s", COLUMNS, ["s"])
    rules = [reason.rule for reason in plan.classification.reasons]
    assert (plan.classification.strategy, rules) == ("group_recompute", ["AGG002", "CLK003", "GRP001", "CLK002"])


def test_tied_order_is_reported() -> None:
    plan = compiled("select s, row_number() over (partition by s order by a) as x from ods.t", COLUMNS, ["s"])
    assert [reason.rule for reason in plan.classification.reasons] == ["WIN001", "WIN002", "PAR001"]


def test_a_recomputed_group_needs_a_key_with_an_exact_text() -> None:
    classification = compiled(
        "select s, arr, count(distinct a) as n from ods.t group by s, arr", COLUMNS, ["s"]
    ).classification
    assert (classification.strategy, classification.reasons[0].rule) == ("full_refresh", "KEY002")


@pytest.mark.checklist(64)
def test_each_aggregate_has_its_class_and_place() -> None:
    sql = (
        "select s,\n  count(1) as n,\n  sum(d) as x, count(distinct a) as k,\n"
        "  sum(f) filter (where b) as y\nfrom ods.t group by s"
    )
    verdicts = compiled(sql, COLUMNS, ["s"]).classification.aggregates
    proofs = [(v.sql, v.verdict, v.reason.rule, v.reason.line, v.reason.column) for v in verdicts]
    assert proofs == [
        ("COUNT(1)", "mergeable", "AGG001", 2, 3),
        ("SUM(d)", "mergeable", "AGG001", 3, 3),
        ("COUNT(DISTINCT a)", "rescan", "AGG002", 3, 16),
        ("SUM(f) FILTER(WHERE b)", "rescan", "AGG003", 4, 3),
    ]


def test_places_are_those_of_the_file_and_not_of_the_rendered_text() -> None:
    raw = "{{ config(tags=['x']) }}\n\nselect a from {{ source('shop', 't') }} limit 3"
    sql = "\n\nselect a from ods.t limit 3"
    tag, rest = raw.index("{{ source"), raw.index(" limit")
    anchors = ((0, raw.index("\n"), False), (sql.index("ods"), tag, True), (sql.index(" limit"), rest, False))
    rendered = replace(model(sql), raw_sql=raw, source_map=SourceMap(raw, sql, anchors))
    (reason,) = _classified(rendered).reasons
    assert (reason.rule, reason.line, reason.column) == ("QRY003", 3, 41)


def _classified(rendered: object) -> Classification:
    return classify(Compiler({T: COLUMNS}).compile(rendered).facts)  # type: ignore[arg-type]


def test_every_reason_is_a_rule_of_the_table() -> None:
    rules = {rule for rule, _ in FULL.values()}.union(*RECOMPUTED.values(), {rule for _, rule, _ in CLOCKED.values()})
    assert rules <= set(RULES)
