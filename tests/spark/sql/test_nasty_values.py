"""Whatever DuckDB is trusted with gives Spark's value or fails, over pairs of values on which engines differ.

The expressions are made of the catalogue's own lists, so what is added to these is compared without a line here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import closing

import duckdb
import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.duckdb import allow_list
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_connection import sandbox
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.duckdb.exact.list_forms import LIST_FORMS
from sqlmesh_like.duckdb.guards import add_guards, add_type_checks
from tests.levels import IS_DEEP
from tests.spark.sql.nasty_tables import create_duck_table, create_spark_view, duck_item, plain, spark_item
from tests.spark.sql.nasty_values import AGGREGATES, NAMES, expressions

pytestmark = pytest.mark.release
LISTED = (*allow_list.FUNCTIONS, exp.Interval)
KINDS = [kind for kind in LISTED if kind not in LIST_FORMS]
OF_TWO = 1.0 if IS_DEEP else 0.2
"""The share of the expressions of two operands that is compared; of one operand, all are."""
ATTEMPTS = 24
"""Into how many pieces the rows are cut at most, to find those that pass where some fail."""
Values = dict[object, object]


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(sandbox()) as db:
        create_duck_table(db, "whole")
        yield db


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> DataFrame:
    return create_spark_view(spark, "v")


def test_every_listed_expression_gives_the_value_of_spark_or_fails(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: DataFrame
) -> None:
    computed = {text: query for text in _expressions() if (query := _trusted(duck, text)) is not None}
    unlike: dict[str, object] = {}
    compared = 0
    for is_group in (False, True):
        chosen = [text for text in computed if text.startswith(AGGREGATES) is is_group]
        for start in range(0, len(chosen), 50):
            for text, (type_, theirs) in _by_spark(spark, chosen[start : start + 50], is_group).items():
                own = _by_duck(duck, computed[text], type_, 0 if is_group else values.count())
                compared += len(own)
                if wrong := {k: (v, theirs[k]) for k, v in own.items() if plain(v) != plain(theirs[k])}:
                    unlike[text] = list(wrong.items())[:2]
    assert not unlike
    assert compared > 100_000


def _expressions() -> Iterator[str]:
    for text in dict.fromkeys(expressions(KINDS, sorted(allow_list._NAMED))):
        is_of_two = any(f"a_{name}" in text for name in NAMES.values()) and "b_" in text
        if not is_of_two or zlib.crc32(text.encode()) / 2**32 < OF_TWO:
            yield text


def _query(text: str) -> str:
    tail = " group by a_boolean" if text.startswith(AGGREGATES) else ""
    return f"select {'a_boolean' if tail else 'k'} as k, {text} as x from v{tail}"


def _trusted(duck: duckdb.DuckDBPyConnection, text: str) -> str | None:
    """The guarded query that DuckDB is allowed to run; None if it is refused before it runs."""
    try:
        tree = sqlglot.parse_one(_query(text), dialect="spark")
    except SqlglotError:  # a number of arguments that the function has not
        return None
    if first_unproven(tree):
        return None
    duck.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM whole")
    try:
        duck.execute(f"DESCRIBE {duck_text(add_type_checks(tree).transform(without_zone))}")
    except duckdb.Error:
        return None
    return duck_text(add_guards(tree).transform(without_zone))


def _by_duck(duck: duckdb.DuckDBPyConnection, query: str, type_: str, count: int) -> Values:
    """The values of the rows on which DuckDB does not fail; `count` 0: of all rows at once."""
    own: Values = {}
    parts, attempts = [(0, count)], 0
    while parts and attempts < ATTEMPTS:
        low, high = parts.pop()
        attempts += 1
        where = f" WHERE k >= {low} AND k < {high}" if count and " over " not in query.lower() else ""
        duck.execute(f"CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM whole{where}")
        try:
            own |= dict(duck.execute(f"SELECT k, {duck_item('x', type_)} FROM ({query})").fetchall())
        except duckdb.Error:
            if where and high - low > 1:
                parts += [(low, (low + high) // 2), ((low + high) // 2, high)]
    return own


def _by_spark(spark: SparkSession, texts: list[str], is_group: bool) -> dict[str, tuple[str, Values]]:
    """Type and values of each expression that Spark computes; those on which it fails are not compared."""
    items = ", ".join(f"{text} as x{number}" for number, text in enumerate(texts))
    try:
        frame = spark.sql(_query(texts[0]).replace(f"{texts[0]} as x", items, 1))
        types = [field.dataType.simpleString() for field in frame.schema.fields[1:]]
        shown = [spark_item(f"x{number}", type_) for number, type_ in enumerate(types)]
        rows = frame.selectExpr("k", *shown).collect()
    except (PySparkException, Py4JJavaError):  # at analysis, or at a row
        if len(texts) == 1:
            return {}
        half = len(texts) // 2
        return _by_spark(spark, texts[:half], is_group) | _by_spark(spark, texts[half:], is_group)
    return {text: (types[n], {row[0]: row[n + 1] for row in rows}) for n, text in enumerate(texts)}
