"""The nasty values as a table of each engine, and what of either's rows is compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.duckdb.duck_connection import sandbox
from sqlmesh_like.duckdb.duck_types import duck_type
from sqlmesh_like.duckdb.exact_sql import SETUP
from sqlmesh_like.names import Column
from tests.spark.sql.nasty_values import ALPHABETS, NAMES, pairs

TYPES = {f"{side}_{NAMES[type_]}": type_ for side in "ab" for type_ in ALPHABETS}
SCHEMA = (Column("k", "int"), *(Column(name, type_) for name, type_ in TYPES.items()))
_NUMBERS = {"date": "unix_date({})", "timestamp": "unix_micros({})"}  # Python has no year 10,000


@contextmanager
def nasty_duckdb(name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB as it computes the steps of programs, with the table of this name."""
    with closing(sandbox()) as db:
        for statement in SETUP:
            db.execute(statement)
        create_duck_table(db, name)
        yield db


def create_duck_table(db: duckdb.DuckDBPyConnection, name: str) -> None:
    rows = list(pairs())
    db.execute(f"CREATE TABLE texts (k INT, {', '.join(f'{column} VARCHAR' for column in TYPES)})")
    one = f"({', '.join('?' * (len(TYPES) + 1))})"
    for start in range(0, len(rows), 100):
        part = [value for number, row in rows[start : start + 100] for value in (number, *row.values())]
        db.execute(f"INSERT INTO texts VALUES {', '.join([one] * (len(part) // (len(TYPES) + 1)))}", part)
    typed = [f"CAST({_text_of(column)} AS {duck_type(type_)}) AS {column}" for column, type_ in TYPES.items()]
    db.execute(f"CREATE TABLE {name} AS SELECT k, {', '.join(typed)} FROM texts")


def _text_of(column: str) -> str:
    return f"replace({column}, '+10000', '10000')" if TYPES[column] in ("date", "timestamp") else column


def create_spark_view(spark: SparkSession, name: str) -> DataFrame:
    rows = [(number, *row.values()) for number, row in pairs()]
    frame = spark.createDataFrame(rows, ", ".join(["k int", *(f"{column} string" for column in TYPES)]))
    typed = frame.selectExpr("k", *(f"cast({column} as {type_}) as {column}" for column, type_ in TYPES.items()))
    whole = typed.coalesce(1)
    whole.cache().createOrReplaceTempView(name)
    return whole


def spark_item(name: str, type_: str) -> str:
    """A column as Spark returns it to Python."""
    return f"{_NUMBERS.get(type_, '{}').format(name)} as {name}"


def duck_item(name: str, type_: str) -> str:
    """The same column of DuckDB, with Spark's type."""
    value = name if type_ == "void" else f"CAST({name} AS {duck_type(type_)})"
    return {"date": f"{value} - DATE '1970-01-01'", "timestamp": f"epoch_us({value})"}.get(type_, value)


def plain(value: object) -> object:
    """A double by all its digits, but for the sign of zero; of an array, each of its values."""
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value + 0.0)
    return value
