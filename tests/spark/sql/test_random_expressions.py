"""Of random expressions over the nasty values, DuckDB gives the value of Spark or refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from tests.levels import count
from tests.spark.sql.nasty_tables import SCHEMA, create_spark_view, duck_item, nasty_duckdb, plain, spark_item
from tests.spark.sql.random_expressions import KINDS, typed

_REFUSALS = (PySparkException, Py4JJavaError, ValueError, OverflowError, TypeError)
_ROWS = 33 * 33
_FEWEST = 8
"""Rows that are given up together if one of them is refused."""
BATCH = 60
SEED = 20


@dataclass(frozen=True)
class Computed:
    """An expression that is proven: DuckDB's query for it, and the type that it is said to have."""

    text: str
    query: str
    type: str | None


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with nasty_duckdb("whole") as db:
        yield db


def test_duckdb_gives_the_value_of_spark_or_refuses(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> None:
    create_spark_view(spark, "v")
    draw, compared, unlike = Random(SEED), 0, list[str]()
    for _ in range(0, count(2 * BATCH, 60 * BATCH, 600 * BATCH), BATCH):
        drawn = [typed(draw, draw.choice(KINDS), draw.randint(1, 3)) for _ in range(BATCH)]
        for each, type_, theirs in _by_spark(spark, list(_proven(drawn))):
            assert each.type in (type_, "null"), each
            own = _by_duckdb(duck, each, duck_item("x", type_), range(_ROWS))
            compared += bool(own)
            wrong = [key for key, value in own.items() if value != theirs[key]]
            unlike += [f"{each.text}, row {key}: {own[key]!r} is {theirs[key]!r} to Spark" for key in wrong[:1]]
    assert not unlike, "\n".join(unlike)
    assert compared > 20


def _proven(texts: Sequence[str]) -> Iterator[Computed]:
    for text in texts:
        with suppress(Unproven, SqlglotError):  # Spark may read what the parser does not
            query = with_known_names(sqlglot.parse_one(f"select k, {text} as x from v", dialect=SPARK))
            assert isinstance(query, exp.Query)
            made = exact(query, lambda _: SCHEMA)
            yield Computed(text, made.sql, made.columns[-1].type)


def _by_spark(
    spark: SparkSession, asked: Sequence[Computed]
) -> Iterator[tuple[Computed, str, Mapping[object, object]]]:
    """Type and values by row of each expression that Spark computes; where one fails, the others are asked apart."""
    if not asked:
        return
    items = ", ".join(f"{each.text} as x{number}" for number, each in enumerate(asked))
    try:
        frame = spark.sql(f"select k, {items} from v")
        types = [field.dataType.simpleString() for field in frame.schema.fields[1:]]
        shown = [spark_item(f"x{number}", type_) for number, type_ in enumerate(types)]
        rows = frame.selectExpr("k", *shown).collect()
    except _REFUSALS:
        half = len(asked) // 2
        for part in (asked[:half], asked[half:]) if half else ():
            yield from _by_spark(spark, part)
        return
    for place, (each, type_) in enumerate(zip(asked, types, strict=True), 1):
        yield each, type_, {row[0]: plain(row[place]) for row in rows}


def _by_duckdb(duck: duckdb.DuckDBPyConnection, computed: Computed, item: str, keys: range) -> dict[object, object]:
    """Values by row; of rows among which one is refused, those of each half."""
    rows = f"WITH v AS (SELECT * FROM whole WHERE k >= {keys.start} AND k < {keys.stop})"
    try:
        found = duck.execute(f"{rows} SELECT k, {item} FROM ({computed.query})").fetchall()
    except duckdb.Error:
        if len(keys) <= _FEWEST:
            return {}
        middle = len(keys) // 2
        first, second = (_by_duckdb(duck, computed, item, part) for part in (keys[:middle], keys[middle:]))
        return first | second
    return {key: plain(value) for key, value in found}
