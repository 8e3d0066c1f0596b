"""The dialects: their generators are used again, and nothing shows it but the memory."""

from __future__ import annotations

import gc
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import ErrorLevel, UnsupportedError, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError

import sqlmesh_like
from sqlmesh_like.dialects import FINGERPRINT, SPARK
from sqlmesh_like.duckdb.dialect import DUCKDB

QUERIES = (
    "with c as (select a, max(b) as b from t group by a) select * from c join (select 1 as a) using (a)",
    "select * from (with c as (select 1 as x) select x from c) as s",
    "select explode(sequence(1, n)) from t lateral view posexplode(l) e as p, v",
    "select a['k'], s.f.g, get_json_object(j, '$.a[0]') from t where d > date '2024-01-01' - interval 1 day",
    "select /* why */ sum(a) over (partition by c order by d rows between 1 preceding and current row) from t",
    "select date_trunc('month', d), cast(a as decimal(10, 2)), 'it\\'s', `a``b` from `t x`",
)
NAMES = ((FINGERPRINT, "spark"), (DUCKDB, "duckdb"))


def test_texts_are_those_of_a_new_generator() -> None:
    choices: tuple[dict[str, Any], ...] = ({}, {"pretty": True}, {"comments": False}, {"identify": True}, {})
    for options in choices:
        for query in QUERIES:
            tree = sqlglot.parse_one(query, dialect="spark")
            for dialect, name in NAMES:
                assert tree.sql(dialect, **options) == tree.sql(name, **options)
    unnamed = exp.Subquery(this=exp.select("1"), alias=exp.TableAlias(columns=[exp.to_identifier("a")]))
    assert {exp.select("a").from_(unnamed).sql(SPARK) for _ in range(3)} == {"SELECT a FROM (SELECT 1) AS _t0(a)"}


@pytest.mark.parametrize(
    ("written", "again"),
    [
        ("ts - interval 1 day 2 hours", "ts - INTERVAL '1 day 2 hours'"),
        ("interval -1 day +1 hour -2 minute '1.5' seconds", "INTERVAL '-1 day 1 hour -2 minute 1.5 seconds'"),
        ("ts - interval '1' day - interval 2 hours", "ts - INTERVAL '1' DAY - INTERVAL '2' HOURS"),
        ("ts + interval 1 day - 2 * n", "ts + INTERVAL '1' DAY - 2 * n"),
        ("array_size(null), size(null)", "ARRAY_SIZE(NULL), SIZE(NULL)"),
        ("date_format(d, 'y'), date_format(d, '')", "DATE_FORMAT(d, 'y'), DATE_FORMAT(d, '')"),
        ("date_format(d, f)", "DATE_FORMAT(d, f)"),
        ("date_format(d, 'E'), date_format(d, 'yyyy-MM-dd')", "DATE_FORMAT(d, 'E'), DATE_FORMAT(d, 'yyyy-MM-dd')"),
        ("trunc(d, 'Q'), date_trunc('q', ts), trunc(d, 'Mon')", "TRUNC(d, 'Q'), DATE_TRUNC('q', ts), TRUNC(d, 'Mon')"),
        ("trunc(d, u), date_trunc(`U`, ts)", "TRUNC(d, u), DATE_TRUNC(`U`, ts)"),
        ("date_trunc(if(b, 'day', 'hour'), trunc(d, 'w'))", "DATE_TRUNC(IF(b, 'day', 'hour'), TRUNC(d, 'w'))"),
        ("timestampadd(M, 1, ts), datediff(q, d, e)", "DATE_ADD(M, 1, ts), DATEDIFF(q, d, e)"),
        ("log10(n), log2(n), log(10, n), ln(n)", "LOG10(n), LOG2(n), LOG(10, n), LN(n)"),
        ("d / 7L, -7s, d * cast(7 as bigint)", "d / 7L, -7s, d * CAST(7 AS BIGINT)"),
        ("a[1L], array(1Y, 2S), 7L - -8L", "a[1L], ARRAY(1Y, 2S), 7L - -8L"),
        ("to_date(s, 'yyyy-MM-dd'), to_date(s)", "TO_DATE(s, 'yyyy-MM-dd'), TO_DATE(s)"),
        ("to_date(s, 'y')", "TO_DATE(s, 'y')"),
        ("to_timestamp(s, 'yyyyy'), unix_timestamp(s, 'y')", "TO_TIMESTAMP(s, 'yyyyy'), UNIX_TIMESTAMP(s, 'y')"),
        ("to_unix_timestamp(s, 'y')", "TO_UNIX_TIMESTAMP(s, 'y')"),
        ("to_unix_timestamp(s, 'yyyy')", "TO_UNIX_TIMESTAMP(s, 'yyyy')"),
        ("from_unixtime(n, 'uuuu'), from_unixtime(n)", "FROM_UNIXTIME(n, 'uuuu'), FROM_UNIXTIME(n)"),
        ("unix_date(d), date_sub(d, '1'), date_sub(d, a + 1)", "UNIX_DATE(d), DATE_SUB(d, '1'), DATE_SUB(d, a + 1)"),
        ("localtimestamp(), current_catalog()", "LOCALTIMESTAMP(), CURRENT_CATALOG()"),
        ("instr(a, b), locate(b, a, 2), space(3)", "INSTR(a, b), LOCATE(b, a, 2), SPACE(3)"),
        ("ceil(a), ceiling(a), log(a), ln(a)", "CEIL(a), CEILING(a), LOG(a), LN(a)"),
        ("levenshtein(a, b, 2), to_char(n, '999')", "LEVENSHTEIN(a, b, 2), TO_CHAR(n, '999')"),
        ("timestampadd(hour, 1, t), dateadd(Month, 1, d)", "DATE_ADD(hour, 1, t), DATE_ADD(Month, 1, d)"),
        (
            "date_trunc('month', t), trunc(to_date(concat(a, 'YEAR'), 'yyyy'), 'year')",
            "DATE_TRUNC('month', t), TRUNC(TO_DATE(CONCAT(a, 'YEAR'), 'yyyy'), 'year')",
        ),
        ("timestampdiff(hour, a, b), datediff(DAY, a, b)", "TIMESTAMPDIFF(hour, a, b), DATEDIFF(DAY, a, b)"),
        ("datediff(a, b)", "DATEDIFF(a, b)"),
        ("named_struct('a', 1), struct(1 as a)", "STRUCT(1 AS a), STRUCT(1 AS a)"),
        ("+ s, + '1', +1, a + b, (-1)", "- -s, - -'1', 1, a + b, (-1)"),
        ("a = b in (c), a between b and c <> d", "(a = b) IN (c), a BETWEEN b AND (c <> d)"),
        ("a = b like 'x' escape '!', a like any ('x')", "(a = b) LIKE 'x' ESCAPE '!', a LIKE ANY('x')"),
    ],
)  # fmt: skip
def test_a_text_comes_back_as_what_it_was(written: str, again: str) -> None:
    assert sqlglot.parse_one(f"select {written}", dialect=SPARK).sql(SPARK) == f"SELECT {again}"


@pytest.mark.parametrize(
    "query",
    [
        "WITH t AS (SELECT 1 AS a) SELECT * FROM (WITH t AS (SELECT 2 AS a) SELECT * FROM t) CROSS JOIN t",
        "SELECT (WITH q AS (SELECT t.x) SELECT * FROM q) FROM t",
        "SELECT /*+ BROADCAST(t), REPARTITION(3) */ a FROM t",
        "SELECT * FROM t, u RIGHT JOIN v ON u.a = v.a CROSS JOIN w, LATERAL (SELECT t.a)",
        "SELECT * FROM t CROSS JOIN (SELECT 1 AS a) AS x, (SELECT 2 AS b) AS y",
    ],
)
def test_clauses_stay_where_they_are(query: str) -> None:
    tree = sqlglot.parse_one(query, dialect=SPARK)
    assert tree.sql(SPARK) == query and tree.parent is None


def test_a_fingerprint_is_one_of_all_spellings_of_one_meaning() -> None:
    def text(sql: str) -> str:
        return sqlglot.parse_one(sql, dialect=SPARK).sql(FINGERPRINT)

    assert text("select ceil(a), date_sub(d, 1)") == text("select ceiling(a), date_add(d, 1 * -1)")
    assert text("select array_size(a)") != text("select size(a)")
    assert text("select to_date(s, 'yyyy-MM-dd')") != text("select to_date(s)")


def test_what_a_text_refused_is_no_matter_of_the_next() -> None:
    refused = exp.select("a").from_("t").lock()
    fine = exp.select("a").from_("t")
    for _ in range(3):
        with pytest.raises(UnsupportedError):
            refused.sql(SPARK, unsupported_level=ErrorLevel.RAISE)
        assert fine.sql(SPARK, unsupported_level=ErrorLevel.RAISE) == "SELECT a FROM t"


def test_threads_have_generators_of_their_own() -> None:
    trees = [sqlglot.parse_one(query, dialect="spark") for query in QUERIES]
    expected = [tree.sql(SPARK, pretty=True) for tree in trees]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            assert list(threads.map(lambda tree: tree.sql(SPARK, pretty=True), trees)) == expected


def test_hundreds_of_texts_leave_nothing_in_memory() -> None:
    trees = [sqlglot.parse_one(query, dialect="spark") for query in QUERIES]

    def left(dialect: Dialect) -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(40):
            for tree in trees:
                tree.sql(dialect)
        gc.collect()
        return sys.getallocatedblocks() - before

    gc.collect()
    gc.freeze()  # what the suite keeps is not looked through at each turn
    for dialect in (SPARK, FINGERPRINT, DUCKDB):
        left(dialect)  # what is made once
        # Other threads of the process may keep something meanwhile, a leak does so each time.
        fewest = min(left(dialect) for _ in range(3))
        assert fewest < 40 * len(trees) / 2, "a leak keeps at least one block of each text"


@pytest.mark.parametrize(("cause", "expected"), [(MemoryError(), MemoryError), (ValueError(), TokenError)])
def test_a_want_of_memory_is_no_error_of_the_text(
    monkeypatch: pytest.MonkeyPatch, cause: Exception, expected: type[Exception]
) -> None:
    def tokenize(*_: object) -> None:
        raise TokenError("Error tokenizing ', 1 as c1'") from cause

    monkeypatch.setattr(Dialect, "tokenize", tokenize)
    with pytest.raises(expected):
        sqlglot.parse("select 1 as a", dialect=SPARK)


def test_no_module_names_the_dialect_instead() -> None:
    root = Path(sqlmesh_like.__file__).parent
    lines = [(path, line) for path in root.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    named = re.compile(r"""\.sql\((?:dialect=|["'](?:spark|duckdb)["'])""")
    assert not [
        (path, line) for path, line in lines if named.search(line) and not line.lstrip().startswith((">>>", "..."))
    ]
