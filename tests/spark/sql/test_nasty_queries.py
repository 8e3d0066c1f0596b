"""Random queries whose clauses combine nasty values of any types: DuckDB gives the rows of Spark, or refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from random import Random

import duckdb
import pytest
import sqlglot
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sqlmesh_like.analyze.expressions.synonyms import with_known_names
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.allow_list import FUNCTIONS, first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from sqlmesh_like.duckdb.guards import add_guards, add_type_checks
from tests.levels import IS_DEEP
from tests.spark.sql.nasty_queries import queries
from tests.spark.sql.nasty_tables import SCHEMA, create_spark_view, duck_item, nasty_duckdb, plain, spark_item
from tests.spark.sql.nasty_values import AGGREGATES, expressions
from tests.spark.sql.random_expressions import KINDS, typed

pytestmark = pytest.mark.release
COUNT = 12_000 if IS_DEEP else 1_200
SEED = 38


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with nasty_duckdb("v") as db:
        yield db


def test_random_queries_give_the_rows_of_spark_or_are_refused(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection
) -> None:
    create_spark_view(spark, "v")
    draw = Random(SEED)
    scalars = [*_scalars(), *(typed(draw, draw.choice(KINDS), draw.randint(1, 2)) for _ in range(COUNT))]
    unlike: dict[str, object] = {}
    compared: Counter[str] = Counter()
    for sql in queries(scalars, COUNT, SEED):
        texts = {"trusted": _trusted(duck, sql), "proven": _proven(duck, sql)}
        if not any(texts.values()) or (theirs := _by_spark(spark, sql)) is None:
            continue
        types, rows = theirs
        items = ", ".join(duck_item(f"c{number}", type_) for number, type_ in enumerate(types))
        names = ", ".join(f"c{number}" for number in range(len(types)))
        for name, text in texts.items():
            if text is None:
                continue
            own = _counted(duck.execute(f"SELECT {items} FROM ({text}) AS rows({names})").fetchall())
            compared[name] += 1
            if own != rows:
                unlike[f"{sql} ({name})"] = list((own - rows).elements())[:3], list((rows - own).elements())[:3]
    assert not unlike, "\n".join(f"{sql}\n  DuckDB, Spark: {rows}" for sql, rows in unlike.items())
    assert min(compared[name] for name in ("trusted", "proven")) > COUNT // 8


def _scalars() -> Iterator[str]:
    """Expressions of one row that DuckDB is trusted with, if their types allow it."""
    for text in expressions(FUNCTIONS):
        if not text.startswith(AGGREGATES) and " over " not in text:
            with suppress(SqlglotError):  # a number of arguments that the function has not
                if first_unproven(sqlglot.parse_one(text, dialect=SPARK)) is None:
                    yield text


def _trusted(duck: duckdb.DuckDBPyConnection, sql: str) -> str | None:
    """The query as DuckDB runs it; None if it is refused, or fails on these rows."""
    tree = sqlglot.parse_one(sql, dialect=SPARK)
    if first_unproven(tree):
        return None
    texts = [duck_text(made.transform(without_zone)) for made in (add_type_checks(tree), add_guards(tree), tree.copy())]
    try:
        duck.execute(f"DESCRIBE {texts[0]}")
        duck.execute(texts[1]).fetchall()
    except duckdb.Error:
        return None
    return texts[2]


def _proven(duck: duckdb.DuckDBPyConnection, sql: str) -> str | None:
    """The query as DuckDB runs a program's steps; None if it is not proven, or fails on these rows."""
    try:
        query = with_known_names(sqlglot.parse_one(sql, dialect=SPARK))
        text = exact(query, lambda _: SCHEMA).sql if isinstance(query, exp.Query) else None
        duck.execute(text or "").fetchall()
    except (Unproven, SqlglotError, duckdb.Error):
        return None
    return text


def _by_spark(spark: SparkSession, sql: str) -> tuple[list[str], Counter[object]] | None:
    """Types and rows; None if Spark refuses the query."""
    try:
        frame = spark.sql(sql)
        frame = frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))
        types = [field.dataType.simpleString() for field in frame.schema.fields]
        shown = frame.selectExpr(*(spark_item(f"c{number}", type_) for number, type_ in enumerate(types)))
        return types, _counted([tuple(row) for row in shown.collect()])
    except (PySparkException, Py4JJavaError, ValueError, OverflowError):  # Python has no such moment
        return None


def _counted(rows: list[tuple[object, ...]]) -> Counter[object]:
    return Counter(tuple(map(plain, row)) for row in rows)
