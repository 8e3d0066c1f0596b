"""What is written from a query's tree means to Spark what its text means, and a query that runs whole is its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.expressions.synonyms import with_known_names
from sqlmesh_like.analyze.text_fidelity import is_text_again
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.spark.program.query_plans import other_meaning
from tests.levels import count
from tests.services.spark_suite import suite_files, suite_jar
from tests.services.wanted import need
from tests.spark.lake import Lake
from tests.spark.sql.nasty_tables import create_spark_view
from tests.spark.sql.random_expressions import spelt

_REFUSALS = (PySparkException, Py4JJavaError)
_EXAMPLE = re.compile(r"^\s*> (.*?);\s*$", re.MULTILINE | re.DOTALL)
_MISREAD = {"group-by-all", "identifier-clause", "inline-table", "sql-compatibility-functions"}
"""Files with a query of which sqlglot makes what Spark refuses: `GROUP BY all, a`, `VALUES 1, 2 AS t(a)`,
`IDENTIFIER(…)`.

Such a query runs as it is written, and is not followed.
"""
_KNOWN = re.compile(r"typeof\(current_date\), typeof\(current_timestamp\) from ttf1|^intersect-all\.sql\.out 1[78]:")
"""Columns named as the clock's functions, which are read as these; and two queries under
`spark.sql.legacy.setopsPrecedence.enabled`, which no session of ours sets."""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose optimizer computes no rows: two queries must be one for all rows, not for those of a test."""
    rules = "spark.sql.optimizer.excludedRules"
    session = spark.newSession()
    session.conf.set(rules, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation")
    yield session
    session.conf.unset(rules)


@dataclass
class Comparison:
    """What Spark makes of texts and of those written from their trees: `changed` where they differ, by name.

    `refused`: Spark does not read what is written. `unlike`: the plan of the text is not that of the same text again,
    as with random seeds, LATERAL and inline rows of some types.
    """

    session: SparkSession
    asked: int = 0
    changed: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    unlike: set[str] = field(default_factory=set)

    def ask(self, name: str, sql: str) -> None:
        again = _again(sql)
        if again is None:
            return  # the parser refuses it, or it has no tree that is faithful: an error before it runs
        try:
            written = self._unnamed(sql)
        except _REFUSALS:
            return  # it needs data or settings of Spark's own suite
        self.asked += 1
        try:
            difference = other_meaning(written, self._unnamed(again))
        except _REFUSALS as error:
            self.refused[name] = f"{again}: {str(error).splitlines()[0]}"
            return
        if difference and other_meaning(written, self._unnamed(sql)):
            self.unlike.add(name)
        elif difference and not self._have_the_same_rows(sql, again):
            self.changed[name] = f"{sql}: {difference}"

    def _have_the_same_rows(self, *texts: str) -> bool:
        """Whether two queries give the same, for plans of the same meaning may differ."""
        rows = [sorted(map(str, self.session.sql(text).collect())) for text in texts]
        return rows[0] == rows[1]

    def _unnamed(self, sql: str) -> DataFrame:
        """The query's frame; names of columns without an alias follow from the spelling."""
        frame = self.session.sql(sql)
        return frame.toDF(*[f"c{number}" for number in range(len(frame.columns))])


def _again(sql: str) -> str | None:
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=SPARK) if tree is not None]
        if len(trees) != 1 or not isinstance(trees[0], exp.Query) or trees[0].find(exp.WithinGroup):
            return None
        return with_known_names(trees[0]).sql(SPARK, unsupported_level=ErrorLevel.RAISE)
    except SqlglotError:
        return None


@pytest.mark.release
def test_models_run_as_they_are_written_and_follow_their_inputs(lake: Lake) -> None:
    table = lake.source("t", "id int, s string, ts timestamp, a array<int>")
    lake.model(
        "of_rows",
        "select /*+ BROADCAST(t) */ id, ts - interval 1 day 2 hours as before, array_size(a) as n,"
        " date_format(ts, 'y') as y, unix_date(date(ts)) as day, date_sub(ts, '1') as d from @t",
    )
    lake.model(
        "nested",
        "with x as (select id from @t) select x.id, y.n from x"
        " join (with x as (select id, 1 as n from @t) select * from x) y on x.id = y.id",
    )
    lake.model(
        "of_sets",
        "select s, count(*) as n from @t group by cube(id, s)"
        " having grouping(s) = 0 and count(*) > 0 or grouping_id(id, s) = 3",
    )
    lake.model(
        "of_dates",
        "select year(ts) as y, month(ts) as m, year(ts) * 100 + month(ts) as ym, grouping_id() as g, count(*) as n"
        " from @t group by rollup(year(ts), month(ts))",
    )
    lake.model("of_none", "select n, n % 3 as rest from (select explode(sequence(1, 7)) as n)")
    lake.model("of_first", "select id, s from @t qualify row_number() over (partition by s order by id desc) = 1")
    lake.model("of_map", "select id, map('a', 1, 'b', 2)[s] as code from @t")
    table.upsert((1, "a", datetime(987, 3, 2, 3), None), (2, "b", datetime(2024, 3, 1, 1, 30), [1, 2]))
    lake.run_well()
    table.upsert((3, "c", datetime(2024, 1, 1), []), delete=[(2, "b", datetime(2024, 3, 1, 1, 30), [1, 2])])
    strategies = lake.run_well()
    assert strategies["of_rows"] == strategies["of_map"] == "row_based"
    assert (strategies["of_dates"], strategies["of_none"]) == ("aggregate_merge", "no_op")
    lake.assert_maintained()
    rows = {row[0]: row[1:] for row in lake.rows("of_rows")}
    assert rows[3][0] == datetime(2023, 12, 30, 22) and rows[3][1:3] == (0, "2024") and rows[1][1:3] == (None, "987")
    assert sorted(lake.rows("nested")) == [(1, 1), (3, 1)]
    assert sorted(lake.rows("of_sets"), key=repr) == [("a", 1), ("a", 1), ("c", 1), ("c", 1), (None, 2)]


@pytest.mark.release
def test_two_texts_are_one_query_or_are_not(session: SparkSession) -> None:
    session.range(3).selectExpr(
        "id", "if(id > 1, array(id), null) as a", "timestamp_seconds(id) as ts"
    ).createOrReplaceTempView("t")

    def meaning(one: str, other: str) -> str | None:
        return other_meaning(session.sql(one), session.sql(other))

    assert (
        meaning("with c as (select id from t) select * from c", "with d as (select t.id from t) select id from d")
        is None
    )
    assert (
        meaning(
            "select 2L as n from t where id is not null", "select cast(2 as bigint) as n from t where not id is null"
        )
        is None
    )
    assert "size" in (meaning("select array_size(a) as n from t", "select size(a) as n from t") or "")
    assert meaning(
        "select ts - interval 1 day 2 hours as x from t", "select ts - interval 1 day + interval 2 hours as x from t"
    )
    assert meaning("select 1 as n", "select 1L as n") == "n int, not n bigint"


SPELLINGS = (
    "i is not null", "i not in (1, 2)", "s not like 'x%'", "i not between 1 and 2", "s not rlike 'x'", "b is not true",
    "i is not distinct from j", "i <=> j", "cast(i as long)", "cast(i as dec(5))",
    "cast(i as real)", "cast(i as numeric(10, 2))", "int(s)", "string(i + 1)", "date(ts)", "double(int(s))", "1L + 2S",
    "1.5D", "date '2020-02-29'", "timestamp '2020-02-29 01:02:03'", "ts + interval 3 months", "d - interval 1 day",
    "current_date()", "sequence(d, current_date)", "substr(s, 1, 2)", "date_diff(d, ts)",
    "i != j", "i == j", "array_agg(i) over (partition by s)",
    "row_number() over (partition by i order by s desc nulls last, d asc nulls first)", "not (i is null)",
    "struct(i, t.s, 1, 'x', b as C)", "named_struct('i', i, 'In', struct(d, i + 1 as j, named_struct('select', s)))",
    "struct(struct(i, s) as x).x", "i between .06 - 0.01 and (.06)+.5", "array(i, 2)[0] + .5",
    "sum(i) over (order by j rows unbounded preceding)", "max(i) over (order by ts range interval 2 days preceding)",
    "sum(i) over (partition by s order by j rows 2 preceding)", "last_value(s, true) over (partition by i order by j)",
    "any_value(s, true) over (partition by i)", "every(b) over (partition by i)", "some(b) over (partition by i)",
    "any(c) over (partition by i)", "s like any ('a%', '3')",
    "(select percentile_cont(0.25) within group (order by i + 1) from t)",
)  # fmt: skip
PREDICATES = (
    "b = c in (true, false)", "b = c not in (true)", "b <> c between false and true", "b between c and b = c",
    "b < c in (b)", "not b = c in (b)", "b <=> c = b", "b is not distinct from c = b",
    "s = s like 'tr%'", "s like 'true' = b", "b = c = b in (c)", "b = c is null", "b = c is distinct from b",
)  # fmt: skip


def test_spellings_of_one_thing_are_one_to_spark(session: SparkSession) -> None:
    columns = "1 as i, 2 as j, '3' as s, true as b, false as c, date '2020-01-01' as d, now() as ts"
    session.sql(f"select {columns} from range(2)").createOrReplaceTempView("t")
    for each in SPELLINGS + PREDICATES:
        text = f"select {each} as x from t union distinct select all null from t"
        tree = with_known_names(sqlglot.parse_one(text, dialect=SPARK))
        assert is_text_again(text, tree) or each in PREDICATES, each
        assert other_meaning(session.sql(text), session.sql(tree.sql(SPARK))) is None, each
    brackets = "select a, b from (values (1, 'x'), (2, null)) as v(a, b)"
    assert is_text_again(
        brackets, sqlglot.parse_one(brackets.replace("(v", "v").replace(")) as", ") as"), dialect=SPARK)
    )
    assert (
        session.sql(brackets).collect() == session.sql("select * from values (1, 'x'), (2, null) as v(a, b)").collect()
    )


@pytest.mark.release
def test_the_examples_of_all_functions_mean_the_same_when_they_are_written_again(session: SparkSession) -> None:
    catalog: Any = session._jsparkSession.sessionState().catalog()
    identifier: Any = session._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier  # type: ignore[union-attr]
    names = [row[0] for row in session.sql("show functions").collect()]
    compared = Comparison(session)
    for name in names:
        with suppress(Exception):  # operators have no entry
            text = str(catalog.lookupFunctionInfo(identifier(name)).getExamples())
            for number, sql in enumerate(_EXAMPLE.findall(text)):
                compared.ask(f"{name} {number}", sql)
                for place, text_of_columns in enumerate(_with_columns(sql)):
                    compared.ask(f"{name} {number} {place}", text_of_columns)
    assert compared.asked > 2_500 and len({name.split()[0] for name in compared.unlike}) < 15
    assert not compared.changed and not compared.refused


def _with_columns(sql: str) -> Iterator[str]:
    """The example with its literals as columns of a row: each alone, then all of them."""
    literals = [token for token in SPARK.tokenize(sql) if token.token_type in (TokenType.STRING, TokenType.NUMBER)]
    if re.search(r"\b(from|interval)\b", sql, re.IGNORECASE) or not literals:
        return
    whole = [literals] if len(literals) > 1 else []
    for chosen in [*([each] for each in literals), *whole]:
        text, values = sql, list[str]()
        for token in reversed(chosen):
            values.append(sql[token.start : token.end + 1])
            text = f"{text[: token.start]}c{len(values)}{text[token.end + 1 :]}"
        columns = ", ".join(f"c{number + 1}" for number in range(len(values)))
        yield f"{text} from values ({', '.join(values)}) as t({columns})"


@pytest.mark.release
def test_the_queries_of_sparks_own_suite_mean_the_same_when_they_are_written_again(session: SparkSession) -> None:
    need(suite_jar)
    compared = Comparison(session)
    for file, statements in suite_files():
        with _tables(session):
            for number, statement in enumerate(statements):
                if not statement.is_query:
                    with suppress(*_REFUSALS):
                        session.sql(statement.sql)
                elif statement.is_answered:
                    compared.ask(f"{file} {number}", statement.sql)
    assert compared.asked > 3_000 and len(compared.unlike) < 250
    changed = {name: text for name, text in compared.changed.items() if not _KNOWN.search(f"{name}: {text}")}
    assert not changed, "\n".join(f"{name}: {text}" for name, text in changed.items())
    assert {name.split(".")[0] for name in compared.refused} <= _MISREAD


@contextmanager
def _tables(session: SparkSession) -> Iterator[None]:
    """What a file creates is gone after it, and so are its settings."""
    before = {row.key: row.value for row in session.sql("set").collect()}
    try:
        yield
    finally:
        session.sql("use default")
        for row in session.sql("show tables").collect():
            with suppress(*_REFUSALS):
                session.sql(f"drop {'view' if row.isTemporary else 'table'} if exists `{row.tableName}`")
            with suppress(*_REFUSALS):
                session.sql(f"drop view if exists `{row.tableName}`")
        for row in session.sql("set").collect():
            if row.key.startswith("spark.sql.") and before.get(row.key) != row.value:
                with suppress(*_REFUSALS):
                    session.conf.unset(row.key)
                    if row.key in before:
                        session.conf.set(row.key, before[row.key])


@pytest.mark.release
def test_random_expressions_mean_the_same_when_they_are_written_again(session: SparkSession) -> None:
    create_spark_view(session, "v")
    draw, compared = Random(21), Comparison(session)
    for number in range(count(0, 2_000, 20_000)):
        compared.ask(str(number), f"select {spelt(draw, draw.randint(1, 4))} as x from v")
    assert compared.asked > 200 and not compared.refused
    assert not compared.changed, "\n".join(compared.changed.values())
