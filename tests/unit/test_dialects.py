"""The generators of texts: they are used again, and nothing shows it but the memory."""

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

import sqlmesh_like
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.dialect import DUCKDB

QUERIES = (
    "with c as (select a, max(b) as b from t group by a) select * from c join (select 1 as a) using (a)",
    "select * from (with c as (select 1 as x) select x from c) as s",
    "select explode(sequence(1, n)) from t lateral view posexplode(l) e as p, v",
    "select a['k'], s.f.g, get_json_object(j, '$.a[0]') from t where d > date '2024-01-01' - interval 1 day",
    "select /* why */ sum(a) over (partition by c order by d rows between 1 preceding and current row) from t",
    "select date_trunc('month', d), cast(a as decimal(10, 2)), 'it\\'s', `a``b` from `t x`",
)
NAMES = ((SPARK, "spark"), (DUCKDB, "duckdb"))


def test_texts_are_those_of_a_new_generator() -> None:
    choices: tuple[dict[str, Any], ...] = ({}, {"pretty": True}, {"comments": False}, {"identify": True}, {})
    for options in choices:
        for query in QUERIES:
            tree = sqlglot.parse_one(query, dialect="spark")
            for dialect, name in NAMES:
                assert tree.sql(dialect, **options) == tree.sql(name, **options)
    unnamed = exp.Subquery(this=exp.select("1"), alias=exp.TableAlias(columns=[exp.to_identifier("a")]))
    assert {exp.select("a").from_(unnamed).sql(SPARK) for _ in range(3)} == {"SELECT a FROM (SELECT 1) AS _t0(a)"}


def test_what_a_text_refused_is_no_matter_of_the_next() -> None:
    refused = exp.select("a").from_("t").lock()
    fine = exp.select("a").from_("t")
    for _ in range(3):
        with pytest.raises(UnsupportedError):
            refused.sql(SPARK, unsupported_level=ErrorLevel.RAISE)
        assert fine.sql(SPARK, unsupported_level=ErrorLevel.RAISE) == "SELECT a FROM t"


def test_threads_have_generators_of_their_own() -> None:
    trees = [sqlglot.parse_one(query, dialect="spark") for query in QUERIES]
    expected = [tree.sql("spark", pretty=True) for tree in trees]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            assert list(threads.map(lambda tree: tree.sql(SPARK, pretty=True), trees)) == expected


def test_a_thousand_texts_leave_nothing_in_memory() -> None:
    trees = [sqlglot.parse_one(query, dialect="spark") for query in QUERIES]

    def left(dialect: Dialect) -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(170):
            for tree in trees:
                tree.sql(dialect)
        gc.collect()
        return sys.getallocatedblocks() - before

    for dialect, _ in NAMES:
        left(dialect)  # what is made once
        assert left(dialect) < 100


def test_no_module_names_the_dialect_instead() -> None:
    root = Path(sqlmesh_like.__file__).parent
    lines = [(path, line) for path in root.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    named = re.compile(r"""\.sql\((?:dialect=|["'](?:spark|duckdb)["'])""")
    assert not [
        (path, line) for path, line in lines if named.search(line) and not line.lstrip().startswith((">>>", "..."))
    ]
