"""Spark runs the text that an author wrote: only relations and the clock are replaced in it."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
import sqlglot
import yaml
from sqlglot import exp

from sqlmesh_like.analyze.author_text import AuthorText, carry_author_text, spark_sql, with_author_text
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.names import TableName

NOW = datetime(2024, 5, 1, 8)
AT = "CAST('2024-05-01 08:00:00.000000' AS TIMESTAMP)"


def bind(schema: str, name: str) -> str | None:
    return f"v_{name}" if schema == "ods" else None


def read(sql: str, **given: object) -> exp.Expr:
    tree = next(statement for statement in sqlglot.parse(sql, dialect=SPARK) if statement is not None)
    return with_author_text(tree, AuthorText(sql, tree, **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "run"),
    [
        (
            "select a,\n   b -- why\nfrom  ods.t /* here */ where a>1 ;",
            "select a,\n   b -- why\nfrom  `v_t` AS `t` /* here */ where a>1",
        ),
        (
            "select x.a from ods.t x join `ods`.`o t` AS y using (a)",
            "select x.a from `v_t` x join `v_o t` AS y using (a)",
        ),
        ("select ods.t.a, t.b, ods.t.* from ods.t", "select t.a, t.b, t.* from `v_t` AS `t`"),
        ("select d.ods.t.a from ods.t as d", "select d.ods.t.a from `v_t` as d"),
        (
            "with t as (select * from ods.t) select t.a from t",
            "with t as (select * from `v_t` AS `t`) select t.a from t",
        ),
        (
            "select 'from ods.t', `ods.t`, '\U0001f600' from ods.t",
            "select 'from ods.t', `ods.t`, '\U0001f600' from `v_t` AS `t`",
        ),
        (
            "select /*+ BROADCAST(u) */ 1 from ods.t, ods.u",
            "select /*+ BROADCAST(u) */ 1 from `v_t` AS `t`, `v_u` AS `u`",
        ),
        (
            "select * from ods.t tablesample (10 percent) repeatable (3), ods.t tablesample (5 rows) x",
            "select * from `v_t` tablesample (10 percent) repeatable (3) AS `t`, `v_t` tablesample (5 rows) x",
        ),
        (
            "select * from ods.t pivot (sum(a) for b in (1)) as p",
            "select * from `v_t` AS `t` pivot (sum(a) for b in (1)) as p",
        ),
        (
            "select 1 from ods.t as x(a, b) lateral view explode(a) e as f",
            "select 1 from `v_t` as x(a, b) lateral view explode(a) e as f",
        ),
        (
            "(select 1 from ods.t) union all select 2 from ods.u;;",
            "(select 1 from `v_t` AS `t`) union all select 2 from `v_u` AS `u`",
        ),
        (
            "select a in (select b from ods.u), other.t.c from other.t",
            "select a in (select b from `v_u` AS `u`), other.t.c from other.t",
        ),
    ],
)
def test_only_names_of_relations_are_replaced(written: str, run: str) -> None:
    assert spark_sql(read(written), bind, NOW) == run


@pytest.mark.parametrize(
    ("written", "run"),
    [
        ("select now() as n, current_timestamp, CURRENT_TIMESTAMP ( )", f"select {AT} as n, {AT}, {AT}"),
        ("select current_date - 1, curdate()", "select CAST('2024-05-01' AS DATE) - 1, CAST('2024-05-01' AS DATE)"),
        ("select localtimestamp()", f"select {AT[:-1]}_NTZ)"),
        ("select unix_timestamp(), unix_timestamp(s)", "select CAST(1714550400 AS BIGINT), unix_timestamp(s)"),
        ("select x.current_date as current_date from x", "select x.current_date as current_date from x"),
        ("select 'now()' -- now()\n, now()", f"select 'now()' -- now()\n, {AT}"),
    ],
)
def test_all_of_a_run_sees_one_time(written: str, run: str) -> None:
    assert spark_sql(read(written), bind, NOW) == run


@pytest.mark.parametrize(
    ("groups", "condition", "run"),
    [
        ("cube(a, b)", "grouping( a ) = 0", "CAST(SHIFTRIGHT(spark_grouping_id, 1) & 1 AS TINYINT) = 0"),
        ("b, rollup(c, a)", "grouping(C)>0", "CAST(SHIFTRIGHT(spark_grouping_id, 1) & 1 AS TINYINT)>0"),
        (
            "grouping sets ((b), (c, (a)))",
            "grouping(b) = 1",
            "CAST(SHIFTRIGHT(spark_grouping_id, 2) & 1 AS TINYINT) = 1",
        ),
        (
            "b, a grouping sets ((a), ())",
            "grouping(a) = 1",
            "CAST(SHIFTRIGHT(spark_grouping_id, 0) & 1 AS TINYINT) = 1",
        ),
        ("year(a), month(a) with rollup", "grouping_id(year(a), month(a)) in (0)", "spark_grouping_id in (0)"),
        ("cube((a is null), a)", "grouping(a) = 0", "CAST(SHIFTRIGHT(spark_grouping_id, 0) & 1 AS TINYINT) = 0"),
        ("cube(t.a, t.g)", "grouping(t.a) = 0", "CAST(SHIFTRIGHT(spark_grouping_id, 1) & 1 AS TINYINT) = 0"),
        ("rollup(a)", "a > 1 /* or */ and not (grouping_id()=0)", "a > 1 /* or */ and not (spark_grouping_id=0)"),
    ],
)
def test_spark_is_asked_for_the_number_of_a_grouping_set_in_having(groups: str, condition: str, run: str) -> None:
    written = f"select a, grouping(b) as g from ods.t group by {groups} having {condition} order by grouping(b)"
    expected = written.replace("ods.t", "`v_t` AS `t`").replace(condition, run)
    assert spark_sql(read(written), bind) == expected
    assert len(re.findall(r"\bGROUPING(_ID)?\(", spark_sql(read(written), bind, from_tree=True))) == 2


def test_without_a_time_the_clock_stays_with_spark() -> None:
    assert spark_sql(read("select now()"), bind) == "select now()"


def test_a_view_is_read_by_its_own_text() -> None:
    view = read("with c as (select a  from ods.t) select a from c -- all\n")
    query = read("with c as (select 1 as b) select v.a,  c.b from dws.v cross join c", views={("dws", "v"): view})
    inner = "with c as (select a  from `v_t` AS `t`) select a from c"
    assert spark_sql(query, bind) == (f"with c as (select 1 as b) select v.a,  c.b from ({inner}) AS `v` cross join c")


def test_a_query_around_the_text_is_written_from_its_tree() -> None:
    tree = exp.select(exp.Count(this=exp.Star())).from_(exp.Subquery(this=read("select  a from ods.t").copy()))
    assert spark_sql(tree, bind) == "SELECT COUNT(*) FROM (select  a from `v_t` AS `t`)"


def test_a_changed_tree_is_not_run_as_the_text_that_it_was() -> None:
    tree = read("select  a from ods.t").copy()
    assert isinstance(tree, exp.Select)
    assert spark_sql(tree.where("a > 1", copy=False), bind) == "SELECT a FROM `v_t` AS `t` WHERE a > 1"


def test_columns_and_a_contract_are_put_around_the_text() -> None:
    assert (
        spark_sql(read("select 1,  2", columns=("1", "2")), bind)
        == "SELECT * FROM (select 1,  2) AS _sml_named(`1`, `2`)"
    )
    assert spark_sql(read("select 1 as b,  2 as a", order=("a", "b")), bind) == (
        "SELECT `a`, `b` FROM (select 1 as b,  2 as a) AS _sml_contract"
    )  # fmt: skip


def test_names_without_a_schema_are_the_tables_they_stand_for() -> None:
    written = read("select t.a  from t")
    full = sqlglot.parse_one("select t.a from ods.t as t", dialect="spark")
    assert (
        spark_sql(carry_author_text(full, written, {"t": TableName("ods", "t")}), bind)
        == "select t.a  from `v_t` AS `t`"
    )


def test_a_table_written_from_the_tree_keeps_what_stands_behind_its_name() -> None:
    tree = sqlglot.parse_one("select * from ods.t pivot (sum(a) for b in (1, 2))", dialect="spark")
    assert spark_sql(tree, bind) == "SELECT * FROM `v_t` AS `t` PIVOT(SUM(a) FOR b IN (1, 2))"
    tree = sqlglot.parse_one("select x.a from ods.t tablesample (5 rows) as x(a)", dialect="spark")
    assert spark_sql(tree, bind) == "SELECT x.a FROM `v_t` TABLESAMPLE (5 ROWS) AS x(a)"


def test_the_text_of_each_documented_construct_is_the_query_of_its_tree() -> None:
    """What is edited in a text and what is replaced in a tree are the same relations."""
    examples = yaml.safe_load((Path(__file__).parents[3] / "docs" / "sql.yml").read_text(encoding="utf-8"))
    for entry in examples:
        sql = re.sub(r"\b(from \(*|join |, )(orders|users)\b", r"\1ods.\2", entry["example"])
        tree = read(sql)
        texts = [spark_sql(tree, bind, NOW), spark_sql(tree, bind, NOW, from_tree=True)]
        assert "v_orders" in texts[0] or "v_users" in texts[0]
        again = {sqlglot.parse_one(text, dialect=SPARK).sql(SPARK, comments=False, identify=True) for text in texts}
        assert len(again) == 1, sql


def test_qualify_is_written_from_the_tree_for_spark_has_no_such_clause() -> None:
    tree = read("select a from ods.t qualify row_number() over (partition by b order by a) = 1")
    assert "QUALIFY" not in spark_sql(tree, bind).upper() and "`v_t`" in spark_sql(tree, bind)
