"""Types of expressions, by Spark's rules. What is not proven is None: a wrong type would cut the state of a sum."""

from __future__ import annotations

import pytest
import sqlglot

from sqlmesh_like.analyze.expressions.types import avg_type, infer, sum_type

KNOWN: dict[str, str | None] = {
    "i": "int", "l": "bigint", "t": "tinyint", "d": "decimal(10,2)", "e": "decimal(12,4)", "w": "decimal(38,10)",
    "s": "string", "b": "boolean", "dt": "date", "ts": "timestamp", "f": "double", "bin": "binary",
    "arr": "array<string>", "u": None,
}  # fmt: skip

CASES = {
    "1": "int", "-1": "int", "2147483648": "bigint", "9223372036854775808": "decimal(19,0)", "-2147483648": "int",
    "-9223372036854775808": "bigint", "'x'": "string", "1.50": "decimal(3,2)", "0.05": "decimal(2,2)", "1e3": "double",
    "true": "boolean", "null": None, "1.5D": "double", "1.5BD": "decimal(2,1)", "i + i": "int", "i + l": "bigint",
    "t + t": "tinyint", "i % l": "bigint", "i / i": "double", "i + f": "double", "d + d": "decimal(11,2)",
    "d - e": "decimal(13,4)", "d * d": "decimal(21,4)", "d / d": "decimal(23,13)", "d * i": "decimal(21,2)",
    "d * 2": "decimal(12,2)", "d * -2": "decimal(12,2)", "d + 100": "decimal(11,2)", "d * l": "decimal(31,2)",
    "w + w": "decimal(38,9)", "w * w": "decimal(38,6)", "w / d": "decimal(38,8)", "d * 1.5": "decimal(13,3)",
    "d + f": "double", "d + s": "double", "d % d": "decimal(10,2)", "dt + 1": "date", "dt - dt": "interval day",
    "ts - ts": "interval day to second", "dt + interval 1 day": "date", "dt + interval 1 hour": "timestamp",
    "ts - interval 1 month": "timestamp", "dt + l": None, "-d": "decimal(10,2)", "-s": "double",
    "abs(d)": "decimal(10,2)", "abs(s)": "double", "(d)": "decimal(10,2)",
    "case when b then d else 0 end": "decimal(12,2)", "case when b then d end": "decimal(10,2)",
    "case when b then d else null end": "decimal(10,2)", "case when b then 1 else l end": "bigint",
    "coalesce(d, e)": "decimal(12,4)", "coalesce(d, 0.0)": "decimal(10,2)", "coalesce(w, l)": "decimal(38,10)",
    "case when b then d else f end": "double", "case when b then d else 'x' end": "string", "if(b, i, l)": "bigint",
    "coalesce(d, u)": None, "greatest(d, e)": "decimal(12,4)", "coalesce(null, null)": None,
    "cast(s as decimal)": "decimal(10,0)", "cast(s as decimal(5))": "decimal(5,0)", "cast(s as integer)": "int",
    "cast(s as varchar(9))": "string", "cast(s as timestamp)": "timestamp", "concat(s, s)": "string",
    "concat(s, i)": "string", "concat(arr, arr)": "array<string>", "substring(bin, 1, 2)": "binary",
    "reverse(arr)": "array<string>", "reverse(s)": "string", "s || s": "string", "upper(s)": "string",
    "length(s)": "int", "year(dt)": "int", "datediff(dt, dt)": "int", "datediff(month, dt, dt)": "bigint",
    "date_add(dt, 1)": "date", "date_sub(dt, 1)": "date", "to_date(s)": "date", "date_trunc('month', dt)": "timestamp",
    "round(d, 1)": "decimal(10,1)", "date_format(dt, 'yyyy')": "string", "i > 1": "boolean", "s like 'x'": "boolean",
    "i <=> l": "boolean", "i div i": "bigint",
}  # fmt: skip


@pytest.mark.parametrize("sql", CASES)
def test_an_expression_has_the_type_that_spark_gives_it(sql: str) -> None:
    assert infer(sqlglot.parse_one(sql, dialect="spark"), KNOWN) == CASES[sql]


@pytest.mark.parametrize(
    ("argument", "total", "average"),
    [
        ("tinyint", "bigint", "double"),
        ("decimal(10,2)", "decimal(20,2)", "decimal(14,6)"),
        ("decimal(30,2)", "decimal(38,2)", "decimal(34,6)"),
        ("decimal(38,10)", "decimal(38,10)", "decimal(38,14)"),
        ("string", "double", "double"),
        (None, None, None),
    ],
)
def test_sums_and_averages_have_the_types_that_spark_gives_them(
    argument: str | None, total: str | None, average: str | None
) -> None:
    assert (sum_type(argument), avg_type(argument)) == (total, average)
