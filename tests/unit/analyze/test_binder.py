"""Name resolution: what a name in a query means, and what is said where it means nothing."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot.errors import ErrorLevel

from sqlmesh_like.analyze.algebra.relation import Aggregate
from sqlmesh_like.analyze.author_text import spark_sql
from sqlmesh_like.analyze.expressions.node_kinds import forms_of
from sqlmesh_like.analyze.query_analysis import CARRIED_FACTS
from sqlmesh_like.errors import SqlError
from sqlmesh_like.plan.checks.check import check_models
from sqlmesh_like.plan.fingerprint import fingerprint
from tests.properties.lake import T, U, check, compiled, schema, states

COLUMNS = schema(a="int", s="string", amount="decimal(10,2)")

WRONG = {
    "select amuont from ods.t": ("models/m.sql:1:8: unknown column 'amuont'", "did you mean 'amount'?"),
    "select a from ods.t as x where y.a > 0": ("models/m.sql:1:32: unknown table or alias 'y'", ""),
    "select u.* from ods.t": ("models/m.sql:1:8: unknown table or alias 'u'", ""),
    "select a, s as A from ods.t": ("models/m.sql:1:11: two columns are named 'A'", "another alias"),
    "select a, s from ods.t group by a": ("models/m.sql:1:11: column 's' is neither in GROUP BY", "add it to GROUP BY"),
    "select a, count(*) as n from ods.t group by 3": ("models/m.sql:1:45: GROUP BY position 3", ""),
    "select a, count(*) as n from ods.t group by 1.5": ("models/m.sql:1:45: GROUP BY position", ""),
    "select a as _sml_key from ods.t": ("models/m.sql:1:8: the alias '_sml_key' is reserved", ""),
    "select sum(a) from ods.t": ("models/m.sql:1:8: the column 'SUM(a)' has no name", "add an alias"),
    "select a from ods.t where sum(a) > 1": ("models/m.sql:1:27: an aggregate is not allowed in WHERE", "HAVING"),
    "select a from ods.t union all select a, s from ods.t": (
        "models/m.sql:1:38: the branches of UNION ALL have different numbers of columns: 1 and 2",
        "by position",
    ),
    "select a\nfrom ods.t\nwhere (a > 0": ("models/m.sql:3:", ""),
    "select a from ods.t; select 1": ("models/m.sql:1:", ""),
    "delete from ods.t": ("models/m.sql:1:1: a model is one SELECT; this is DELETE", ""),
    "select a from ods.t for update": ("models/m.sql:1:", "rewrite it"),
}


@pytest.mark.parametrize("sql", WRONG)
def test_a_mistake_is_told_with_its_place_and_the_way_out(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql, COLUMNS)
    message, hint = WRONG[sql]
    assert str(caught.value).startswith(message) and hint in (caught.value.hint or "")
    assert caught.value.exit_code == 2


def _keys(sql: str) -> list[str]:
    relation = compiled(sql, COLUMNS).facts.relation
    assert isinstance(relation, Aggregate)
    return [key.expression.sql("spark") for key in relation.keys]


def test_a_column_wins_over_an_alias_in_group_by() -> None:
    assert _keys("select a as s, count(*) as n from ods.t group by a, s") == ["`a`", "`s`"]


def test_group_by_takes_an_alias_or_a_position() -> None:
    assert _keys("select upper(s) as big, count(*) as n from ods.t group by BIG") == ["UPPER(`s`)"]
    assert _keys("select upper(s) as big, count(*) as n from ods.t group by 1") == ["UPPER(`s`)"]


def test_names_are_compared_without_case_and_texts_with_it() -> None:
    sql = "select count(case when S = 'x' then A end) as n, count(case when s = 'X' then a end) as k from ods.t"
    relation = compiled(sql, COLUMNS).facts.relation
    assert isinstance(relation, Aggregate) and len(relation.calls) == 2


def test_one_call_written_twice_is_one_state() -> None:
    relation = compiled("select sum(A) as x, SUM(t.a) + 1 as y from ods.t", COLUMNS).facts.relation
    assert isinstance(relation, Aggregate) and len(relation.calls) == 1


def test_a_cte_hides_a_table_and_is_seen_below() -> None:
    sql = "with t as (select a as z from ods.t) select z from (select z from t) as q"
    facts = compiled(sql, COLUMNS).facts
    assert [column.name for column in facts.schema or ()] == ["z"]


def test_a_lateral_alias_that_is_also_a_column_means_the_column() -> None:
    plan = compiled("select s as a, a + 1 as b from ods.t", schema(a="int", s="string"))
    assert plan.classification.strategy == "row_based"
    assert check(plan, schema(a="int", s="string"), states({"1": (1, "x")}, {"1": (2, "x")}))


def test_the_columns_of_an_input_are_found_by_its_id() -> None:
    assert compiled("select a from ods.t", COLUMNS).facts.inputs[0].unique_id == T


def _shown(sql: str) -> list[str]:
    return [column.name for column in compiled(sql, COLUMNS).facts.schema or ()]


def test_a_star_over_using_starts_with_the_columns_of_the_last_using() -> None:
    three = (
        "select * from (select a, s as s1 from ods.t) as x join (select a, amount as y1 from ods.u) as y using (a)"
        " join (select s as s1, amount as z1 from ods.t) as z using (s1)"
    )
    assert _shown(three) == ["s1", "a", "y1", "z1"]
    again = "select * from (select a, s as x1 from ods.t) as x join (select a, s as y1 from ods.u) as y using (a)"
    assert _shown(f"{again} join (select a, s as z1 from ods.u) as z using (a)") == ["a", "x1", "y1", "z1"]


def test_a_name_of_a_correlated_query_means_the_inner_column_first() -> None:
    sql = "select a from ods.t where exists (select 1 from ods.u where a = t.a and amount > 0)"
    path = states({"1": (1, "x", None)}, {"1": (2, "x", None)})
    path = [{**state, U: {"1": (2, "y", 1)}} for state in path]
    assert len(check(compiled(sql, COLUMNS), COLUMNS, path)) == 1


def test_having_without_group_by_or_aggregates_is_one_row() -> None:
    plan = compiled("select 1 as one from ods.t having 1 = 1", COLUMNS)
    assert len(check(plan, COLUMNS, states({}, {"1": (1, "x", None), "2": (1, "x", None)}, {"1": None}))) == 2


@pytest.mark.parametrize("word", ["union all", "union", "intersect", "except", "intersect all", "except all"])
def test_messages_name_the_set_operation(word: str) -> None:
    reasons = compiled(f"select a from ods.t {word} select a > 1 from ods.t", COLUMNS).classification.reasons
    assert [reason.message for reason in reasons if reason.rule == "TYP001"] == [
        f"{word.upper()} column 'a' has no one proven type in all branches"
    ]
    with pytest.raises(SqlError, match=f"of {word.upper()} have different numbers of columns"):
        compiled(f"select a from ods.t {word} select a, s from ods.t", COLUMNS)


@pytest.mark.parametrize("word", ["union all", "union", "intersect", "except"])
def test_columns_after_a_set_operation_need_no_names(word: str) -> None:
    path = states({"1": (1, "x", None), "2": (2, "x", None)}, {"1": (3, "x", None)})
    plan = compiled(f"select a from ods.t {word} select cast(1 as int) from ods.t where a > 1", COLUMNS)
    assert [column.name for column in plan.facts.schema or ()] == ["a"]
    assert len(check(plan, COLUMNS, path)) == 1


def test_what_is_taken_as_carried_over_unseen_is_carried_over() -> None:
    tree = sqlglot.parse_one(
        """with c as (select *, null as z from ods.t as x where not (x.a = 1 or x.b <> 2) and x.s like 'a%')
        select c.a + 1 - 2 * -3 as n, coalesce(c.s, 'x') as s, case when c.a > 1 then if(c.b >= 2, 3, 4) end as k,
          sum(c.a) as total, count(*) as rows, avg(c.a) as mean, min(c.b) as least, max(c.b) as most,
          bool_and(c.a > 1) as each, bool_or(c.a > 1) as one, count_if(c.a > 1) as some,
          stddev(c.a) as s1, stddev_samp(c.a) as s2, stddev_pop(c.a) as s3, variance(c.a) as v1, var_pop(c.a) as v2,
          regr_count(c.a, c.b) as r1, regr_avgx(c.a, c.b) as r2, regr_avgy(c.a, c.b) as r3, regr_sxx(c.a, c.b) as r4,
          regr_syy(c.a, c.b) as r5, max_by(c.a, c.b) as c1, min_by(c.a, c.b) as c2, first(c.a) as c3,
          first_value(c.a) as c4, last(c.a) as c5, last_value(c.a) as c6, any_value(c.a) as c7
        from c join (select a from ods.u where a in (1, 2) or b between 1 and 2 or c is null or d is true) as u
          on c.a = u.a and c.b < u.b
        having max(c.b) <= 3""",
        dialect="spark",
    )
    assert forms_of(tree) == CARRIED_FACTS
    written = tree.sql("spark", unsupported_level=ErrorLevel.RAISE)
    assert sqlglot.parse_one(written, dialect="spark") == tree


@pytest.mark.parametrize(
    "hint", ["BROADCAST(t)", "repartition (3, a), coalesce(1)", "MAPJOIN(nobody)", "their_own(a(1))"]
)
def test_a_hint_decides_nothing_but_how_spark_joins(hint: str) -> None:
    hinted, plain = (compiled(f"select {text} a from ods.t", COLUMNS) for text in (f"/*+ {hint} */", ""))
    assert hinted.classification.strategy == "row_based" and fingerprint(hinted) == fingerprint(plain)
    check_models([hinted.model], dict.fromkeys([ref.unique_id for ref in hinted.model.inputs], COLUMNS)).require_sound()
    assert spark_sql(hinted.facts.tree, lambda *_: None).lower().startswith(f"select /*+ {hint.lower()} */")


@pytest.mark.parametrize(
    "value",
    [
        "current_timestamp() - interval 1 day 2 hours", "array_size(array(a))", "date_format(s, 'y')", "to_date(s, '')",
        "unix_date(date(s))", "date_sub(date(s), a)", "to_char(a, '999')", "levenshtein(s, s, 2)", "+ s",
        "to_unix_timestamp(s, 'yyyyy')",
    ],
)  # fmt: skip
def test_what_sqlglot_has_no_class_for_is_followed_all_the_same(value: str) -> None:
    assert compiled(f"select {value} as x from ods.t", COLUMNS).classification.strategy == "row_based"


@pytest.mark.parametrize("side", ["left", "right", "full"])
def test_a_comma_joins_before_the_joins_behind_it(side: str) -> None:
    """In Spark `a, b RIGHT JOIN c` has a row of `c` alone, and one for each row of `a` it has not."""
    comma, cross = (
        compiled(f"select t.a as x, b.s from ods.t{join} ods.u as b {side} join ods.u as c on b.a = c.a", COLUMNS)
        for join in (",", " cross join")
    )
    assert comma.table.build is not None and cross.table.build is not None
    assert comma.table.build.sql() == cross.table.build.sql()
    assert comma.classification.strategy == "group_recompute"


def test_using_behind_a_comma_is_not_followed() -> None:
    """Of two columns of that name to its left, Spark takes the first one."""
    query = "select t.a as x, b.s from ods.t, ods.u as b join ods.u as c using (a)"
    reason = compiled(query, COLUMNS).facts.unsupported_reason
    assert reason is not None and reason.message == "a USING JOIN behind a comma"
