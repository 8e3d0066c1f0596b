"""Operators, casts and functions over types that Spark refuses are told at compile; what it converts is left alone."""

from __future__ import annotations

import pytest

from sqlmesh_like.compiler import Compiler
from sqlmesh_like.errors import SqlError
from sqlmesh_like.plan.checks.check import check_models
from sqlmesh_like.plan.checks.written_types import WrittenTypes
from tests.properties.lake import T, U, model, schema

COLUMNS = schema(
    i="int", l="bigint", d="decimal(10,2)", f="double", s="string", b="boolean", dt="date", ts="timestamp",
    bin="binary", arr="array<int>", m="map<string,int>",
)  # fmt: skip
WHOLE = "select distinct {} as x from ods.t limit 3"
"""A query that is not in the algebra."""

REFUSED = {
    "cast(b as date)": "boolean cannot be cast to date",
    "cast(arr as int)": "array<int> cannot be cast to int",
    "try_cast(dt as int)": "date cannot be cast to int",
    "b + 1": "boolean + int is not possible",
    "f div 2": "double div int is not possible",
    "dt * 2": "date * int is not possible",
    "ts - s": "timestamp - string is not possible",
    "-b": "negative() takes a number or an interval as argument 1, not boolean",
    "s and b": "AND takes a boolean, not string",
    "~ f": "~ takes integers, not double",
    "m = m": "map<string,int> is compared with map<string,int>",
    "dt in (1, 2)": "date is compared with int",
    "coalesce(b, 1)": "coalesce() of boolean and int have no common type",
    "case when i then 1 end": "WHEN takes a boolean, not int",
    "upper(arr)": "upper() takes string as argument 1, not array<int>",
    "add_months(i, 1)": "add_months() takes date as argument 1, not int",
    "soundex(i)": "soundex() takes string as argument 1, not int",
    "array_contains(arr, 'x')": "array<int> cannot hold string",
    "date_add(dt, 1.5)": "a date takes whole days as int, not decimal(2,1)",
    "extract(epochs from dt)": "EPOCHS is not a field of date",
    "sum(b) over (partition by i)": "a sum is of numbers, not boolean",
    "lag(dt, 1, 0) over (partition by i order by l)": "LAG of date has a default of int",
    "date_sub(dt, 1, 2)": "date_sub takes 2 arguments, not 3",
    "round(d, 1, 2)": "round takes 1 or 2 arguments, not 3",
}  # fmt: skip
ACCEPTED = (
    "cast(b as int)", "cast(dt as timestamp)", "cast(ts as int)", "s + 1", "d % 2", "dt + 1", "dt - dt", "s - dt",
    "ts - interval 1 hour", "s + interval 1 day", "upper(i)", "length(bin)", "concat(s, i, dt)", "s = 1", "b = 1",
    "i in ('1', 2)", "coalesce(dt, s)", "round(s, 1)", "date_add(s, '1')", "array_contains(arr, 1.5)", "abs(s)",
    "concat_ws(',', s, array(s))", "array_join(arr, ',')", "substring(s from 2 for 3)", "trim(both 'x' from s)",
    "date_add(day, 1, dt)", "lag(d, 1, 0) over (partition by i order by l)", "if(b, 1, 2.5)", "nullif(b, 0)",
    "not null", "- s", "transform(arr, x -> x + 1)", "aggregate(arr, 0, (a, x) -> a + x)",
    "sum(s) over (partition by i)", "i <=> b",
)  # fmt: skip


def error_of(sql: str) -> SqlError | None:
    return check_models([model(sql)], {T: COLUMNS, U: COLUMNS}).errors.get(model(sql).unique_id)


@pytest.mark.parametrize("item", REFUSED)
def test_what_spark_refuses_is_told_with_its_place(item: str) -> None:
    for sql in (f"select {item} as x from ods.t", WHOLE.format(item)):
        error = error_of(sql)
        assert error is not None, sql
        assert error.message.startswith(REFUSED[item]), error.message
        assert error.location is not None and error.location.line == 1 and error.location.column, sql
        assert error.hint


@pytest.mark.parametrize("item", ACCEPTED)
def test_what_spark_converts_is_accepted(item: str) -> None:
    assert [error_of(sql) for sql in (f"select {item} as x from ods.t", WHOLE.format(item))] == [None, None]


def test_a_condition_that_is_no_boolean_is_told() -> None:
    error = error_of("select i from ods.t where i")
    assert error is not None and error.message == "a condition is a boolean, not int: i"


def test_a_column_of_a_query_below_has_the_type_that_it_is_computed_to() -> None:
    below = "with c as (select dt as x, i + 1 as n from ods.t limit 3) select {} as y from c"
    assert error_of(below.format("x + n")) is None
    error = error_of(below.format("x * n"))
    assert error is not None and error.message.startswith("date * int is not possible")


def test_a_union_of_types_without_a_common_one_is_told() -> None:
    error = error_of("select bin as x from ods.t union select i from ods.t limit 3")
    assert error is not None and "the column 'x' of UNION: binary and int have no common type" in error.message


def test_a_query_that_is_rebuilt_has_columns_with_types() -> None:
    compiler = Compiler({T: COLUMNS, U: COLUMNS})
    sql = "with c as (select i % 2 as x, d from ods.t limit 3) select x, round(d, 1) as y from c"
    written = WrittenTypes.of(compiler.compile(model(sql)).facts, compiler.columns)
    assert written is not None
    assert written.outputs() == [("x", "int"), ("y", "decimal(10,1)")]
