"""What unit tests trust DuckDB with: forms and functions by a list, and of some of these only values by a guard."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pytest
import sqlglot

from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.duckdb.guards import add_guards, add_type_checks, guard_in


@pytest.fixture(scope="module")
def table() -> Iterator[duckdb.DuckDBPyConnection]:
    row = "('12', '1.9', '2024-01-02', 1.50::decimal(5,2), 2.5::double, date '2024-01-02', 7)"
    nulls = f"({', '.join(['NULL'] * 7)})"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"create table t as select * from (values {row}, {nulls}) v(n, s, day, c, f, d, i)")
        yield connection


# What Spark 3.5 gives for the same expression over the row that is not all NULL.
AGREED = {
    "cast(n as int)": 12,
    "cast(cast(n as int) as string)": "12",
    "cast(day as date)": date(2024, 1, 2),
    "to_date(day)": date(2024, 1, 2),
    "cast(c as string)": "1.50",
    "cast(s as decimal(5,2))": Decimal("1.90"),
    "concat(n, '-', d)": "12-2024-01-02",
    "cast(date_add(d, 1) as string)": "2024-01-03",
    "date_add(date_add(d, 1), 1)": date(2024, 1, 4),
    "date_trunc('MONTH', d)": datetime(2024, 1, 1),
    "round(c, 1)": Decimal("1.5"),
    "trim('\u3000x\u00a0 ')": "\u3000x\u00a0",
    "upper('ñandú 张三')": "ÑANDÚ 张三",
    "lower('ÑANDÚ')": "ñandú",
    "substring(n, 1, i - 9)": "",
    "i % (i - 7)": None,
    "c / 0": None,
    "c / 2": 0.75,
    "floor(cast(9007199254740993 as bigint))": 9007199254740993,
    "ceil(c)": Decimal("2"),
    "n = '12'": True,
    "i > 6": True,
    "d = '2024-01-02'": True,
    "timestamp '2024-03-31 01:30:00' - interval 24 hours = timestamp '2024-03-30 01:30:00'": True,
    "greatest(i, null, 3)": 7,
    "md5(n)": "c20ad4d76fe97759aa27a0c99bff6710",
    "md5(concat(n, '-', coalesce(cast(c as string), '')))": "5e4ae5ab28aea3fa26477bcc986495c2",
    "power(2, 10)": 1024.0,
    "cast(f as decimal(5,2))": Decimal("2.50"),
    "cast(f / 20 as decimal(5,2))": Decimal("0.13"),  # 0.125: DuckDB alone rounds the double below it
    "s rlike '^1'": True,
    "date_format(d, 'EEE')": "Tue",
    "cast(floor(f) as int)": 2,
    "any_value(cast(n as int))": 12,
    "max_by(n, d)": "12",
    "min_by(cast(n as int), c + 1)": 12,
    "first(s)": "1.9",
    "last_value(d)": date(2024, 1, 2),
    "locate('2', n)": 2,
    "split_part(cast(c as string), '.', 2)": "50",
    "row_number() over (partition by cast(n as int) order by cast(day as date))": 1,
}
DOUBTED = {
    "upper(concat(n, 'ß'))": "UPPER of 12ß",
    "lower(concat(n, 'ΑΣ'))": "LOWER of 12ΑΣ",
    "c / 7": "the quotient of decimals 0.21428571428571427",
    "cast(add_months(d, 120000) as string)": "the cast to STRING of 12024-01-02",
    "concat(n, cast(0 as decimal(20,8)))": "the text of 0.00000000",
    "avg(c + 0.00001)": "AVG of decimals 1.50001",
    "right(n, 9223372036854775807)": "the length 9223372036854775807",
    "avg(9007199254740993)": "AVG of 9007199254740993",
    "sum(9223372036854775807)": "SUM 18446744073709551614",
    "cast(s as int)": "the cast to INT of 1.9",
    "cast(c as int)": "the cast to INT of 1.50",
    "cast(f as int)": "the cast to INT of 2.5",
    "cast(f as string)": "the cast to STRING of 2.5",
    "to_utc_timestamp(timestamp '2024-11-03 01:30:00', 'America/New_York')": "the moment of 2024-11-03 01:30:00",
    "regexp_extract(concat(n, 'ß'), '2', 0)": "the pattern of 12ß",
    "concat(n, 'İ') ilike '12_'": "the pattern of 12İ",
    "timestamp_seconds(c)": "TIMESTAMP_SECONDS of 1.50",
    "cast(cast(s as int) as string)": "the cast to INT of 1.9",
    "to_date(n)": "the date of 12",
    "round(f, 1)": "ROUND of the double 2.5",
    "concat('x', f)": "the text of 2.5",
    "sequence(8, i, 1)": "SEQUENCE to 7",
    "array_join(array_sort(collect_list(cast(f as string))), ',')": "the cast to STRING of 2.5",
    "sum(i) over (partition by cast(s as int))": "the cast to INT of 1.9",
    "any_value(i)": "ANY_VALUE of 2 values",
    "any_value(cast(s as int))": "the cast to INT of 1.9",
    "first(i)": "FIRST of 2 values",
    "last_value(i)": "LAST_VALUE of 2 values",
    "max_by(i, coalesce(i, 7))": "MAX_BY of 2 values",
    "min_by(d, coalesce(n, '12'))": "MIN_BY of 2 values",
    "max_by(i, cast(s as int))": "the cast to INT of 1.9",
    "max_by(n, array(i))": "MAX_BY by INTEGER[]",
}
UNPROVEN = {
    "soundex(n)": "function SOUNDEX",
    "power(i, 2)": "POWER of other than whole numbers as written",
    "n rlike s": "a regular expression that is computed, has a backslash or what Java has alone",
    r"n rlike '\\d'": "a regular expression that is computed, has a backslash or what Java has alone",
    "n rlike '(?U)a+'": "a regular expression that is computed, has a backslash or what Java has alone",
    "n rlike '(a*)*b'": "a regular expression that is computed, has a backslash or what Java has alone",
    "n rlike 'a(?=b)'": "a regular expression that is computed, has a backslash or what Java has alone",
    "n rlike '[a-z&&[^b]]'": "a regular expression that is computed, has a backslash or what Java has alone",
    "unix_timestamp(n)": "UNIX_TIMESTAMP of other than a cast to timestamp",
    "split_part(n, s, 1)": "SPLIT_PART by other than a text and a number as written",
    "date_part('epoch', d)": "this part of DATE_PART",
    "from_utc_timestamp(d, n)": "a time zone that is computed",
    "my_function(n)": "function MY_FUNCTION",
    "date_format(d, 'QQQ')": "this pattern of DATE_FORMAT",
    "date_format(d, 'yyyy[-MM]')": "this pattern of DATE_FORMAT",
    "substring(n, -2)": "SUBSTRING from a position that is not a positive number",
    "n like s": "LIKE with a pattern that is computed or has a backslash",
    "'a' || 1 + 2": "|| before + or - without parentheses",
    "true <=> false in (true)": "<=> before IN, BETWEEN or LIKE",
    "floor(c, 1)": "FLOOR to a number of digits",
    "d + interval 1 day": "form INTERVAL",
    "datediff(month, d, d)": "DATEDIFF by a unit",
    "timestampdiff(hour, d, d)": "function TIMESTAMPDIFF",
    "to_date(n, 'yyyy')": "TO_DATE with a pattern",
    "locate('2', n, 2)": "LOCATE from a position on",
    "array_join(collect_list(n), ',')": "ARRAY_JOIN of other than sorted texts",
    "array_join(array_sort(collect_list(n)), ',')": "ARRAY_JOIN of other than sorted texts",
    "array_join(array_sort(collect_list(cast(n as string))), n)": "ARRAY_JOIN of other than sorted texts",
    "array_join(array_sort(collect_list(cast(n as string))), ',', '-')": "ARRAY_JOIN of other than sorted texts",
    "array_join(slice(array_sort(collect_list(cast(n as string))), 2, 1), ',')": (
        "SLICE of other than the first of sorted texts"
    ),
    "array_join(transform(sort_array(collect_list(n)), x -> upper(x)), ',')": "a lambda",
    "array_join(transform(sort_array(collect_list(struct(i, n))), x -> cast(x.col2 as string)), ',')": "STRUCT",
    "transform(array(i), x -> cast(x as string))": "TRANSFORM",
    "sort_array(collect_list(i))": "a sorted list that is not joined",
    "collect_set(i)": "COLLECT_SET that is not sorted",
    "any_value(i) over (partition by n)": "ANY_VALUE of other than a group",
    "any_value(i) filter (where i > 1)": "ANY_VALUE of other than a group",
    "any_value(i, true)": "form IGNORENULLS",
    "first(i) filter (where i > 1)": "FIRST of other than a group",
    "last_value(i) over (order by n)": "LAST_VALUE of other than a group",
    "max_by(i, n) filter (where i > 1)": "MAX_BY of other than a group",
    "min_by(distinct i, n)": "MIN_BY of other than a group",
    "sequence(1, i)": "SEQUENCE without steps upwards",
    "ntile(i) over (order by n)": "NTILE of other than a number as written",
    "sequence(i, 1, -1)": "SEQUENCE without steps upwards",
}


@pytest.mark.parametrize("expression", AGREED)
def test_what_both_engines_compute_alike_passes(table: duckdb.DuckDBPyConnection, expression: str) -> None:
    tree = sqlglot.parse_one(f"select {expression} as x from t where i is not null", dialect="spark")
    assert first_unproven(tree) is None
    (row,) = table.execute(duck_text(add_guards(tree).transform(without_zone))).fetchall()
    assert row == (AGREED[expression],)


@pytest.mark.parametrize("expression", DOUBTED)
def test_a_value_on_which_they_may_differ_fails_with_the_value(
    table: duckdb.DuckDBPyConnection, expression: str
) -> None:
    tree = sqlglot.parse_one(f"select {expression} as x from t", dialect="spark")
    assert first_unproven(tree) is None
    with pytest.raises(duckdb.Error) as caught:
        table.execute(duck_text(add_guards(tree).transform(without_zone))).fetchall()
    assert guard_in(str(caught.value)) == DOUBTED[expression]


@pytest.mark.parametrize("expression", UNPROVEN)
def test_a_function_or_form_that_is_not_listed_is_named(expression: str) -> None:
    assert (
        first_unproven(sqlglot.parse_one(f"select {expression} as x from t", dialect="spark")) == UNPROVEN[expression]
    )


OF_OTHER_TYPES = {
    "s = i": "a comparison of VARCHAR and INTEGER",
    "i = '1.9'": "the text '1.9' beside a value of INTEGER",
    "c <> '2'": "the text '2' beside a value of DECIMAL(5,2)",
    "s in (1, 2)": "a comparison of VARCHAR and INTEGER",
    "f in ('1')": "IN ('1') of DOUBLE",  # Spark compares '2.5' with '1'
    "lag(i, 1, 1.5) over (order by n)": "LAG of INTEGER and DECIMAL(2,1)",  # Spark cuts 1.5, DuckDB rounds it
    "i between '1.2' and 3": "the text '1.2' beside a value of INTEGER",
    "case s when 2 then 1 end": "a comparison of VARCHAR and INTEGER",
    "nullif(s, 2)": "a comparison of VARCHAR and INTEGER",
    "coalesce(i, '5')": "COALESCE of INTEGER and VARCHAR",
    "if(i > 1, i, '5')": "IF of INTEGER and VARCHAR",
    "lag(i, 1, '5') over (order by n)": "LAG of INTEGER and VARCHAR",
    "d - d": "- of DATE and DATE",
    "d = '2024-1-2'": "the text '2024-1-2' beside a value of DATE",
    "cast(c as decimal(38,18)) * c": "* of DECIMAL(38,18) and DECIMAL(5,2)",
    "(select max(v.x) from (values (1), ('1.9')) as v(x))": "VALUES of INTEGER and VARCHAR",
    "exists (select 1 from t where s in (select f from t union all select s from t))": (
        "a UNION of (DOUBLE) and (VARCHAR)"
    ),
    "exists (select d, 1 from t intersect select s, c from t)": (
        "an INTERSECT of (DATE, INTEGER) and (VARCHAR, DECIMAL(5,2))"
    ),
    "exists (select 1 union all (select null except select d from t) union all select '1.9')": (
        "a UNION of (INTEGER) and (DATE) and (VARCHAR)"
    ),
    "(select max(a.s) from t as a join (select i as s from t) as b using (s))": "USING (s) of VARCHAR and INTEGER",
    "exists (select 1 from t join (select i, 1 as z) as b using (i) left join (select s as i from t) as c using (i))": (
        "USING (i) of INTEGER and VARCHAR"
    ),
    # Spark keeps the fraction of decimals that have more than 38 digits together, DuckDB the whole part.
    "coalesce(cast(c as decimal(38,18)), cast(c as decimal(38,2)))": "COALESCE of DECIMAL(38,18) and DECIMAL(38,2)",
    "cast(c as decimal(38,0)) < f": "a comparison of DECIMAL(38,0) and DOUBLE",  # DuckDB's double is another
    "sum(i) * f": "* of HUGEINT and DOUBLE",
}
OF_FITTING_TYPES = (
    "s = '1.9'", "i = '2'", "i in ('2', 3)", "d >= '2024-01-02'", "d in ('2024-01-02')", "i < c and c <= f",
    "coalesce(i, 0) + sum(c) over () * 1.5", "d + 1", "greatest(i, null, 3)",
    "exists (select 1 from t where i in (select 3 from t union select i + 1 from t except select null))",
    "sum(i) / 2",
    "(select max(s) from t as a join t as b using (s, i) join (select i as s from t) as c on a.i = c.s)",
    "exists (select c, 'x' from t union all select 1e0, s from t union all values (2, null))",
    "exists (select 1 from t where (i, n) in (select i, s from t))",
    # The text of a whole number is one in both.
    "exists (select 1 from t where s in (select i from t union all select s from t except select 3))",
)  # fmt: skip


@pytest.mark.parametrize("expression", OF_OTHER_TYPES)
def test_types_that_spark_combines_otherwise_do_not_bind(table: duckdb.DuckDBPyConnection, expression: str) -> None:
    with pytest.raises(duckdb.Error) as caught:
        _bind(table, expression)
    assert guard_in(str(caught.value)) == OF_OTHER_TYPES[expression]


def test_a_text_is_no_number_of_months(table: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.BinderException, match="to_months"):
        _bind(table, "add_months(d, n)")


@pytest.mark.parametrize("expression", OF_FITTING_TYPES)
def test_types_that_both_engines_combine_alike_bind(table: duckdb.DuckDBPyConnection, expression: str) -> None:
    _bind(table, expression)


@pytest.mark.parametrize(
    "sql", ["select coalesce(a in (select b from t), true) as x from t", "select case when a in (select 1) then 1 end"]
)
def test_in_of_a_query_is_trusted_as_a_condition_alone(sql: str) -> None:
    assert first_unproven(sqlglot.parse_one(sql, dialect="spark")) == "IN of a query as a value"


def test_text_is_not_ordered_beside_numbers(table: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.BinderException, match="Cannot compare"):
        _bind(table, "s > i")


def test_a_join_of_text_with_a_number_does_not_bind(table: duckdb.DuckDBPyConnection) -> None:
    tree = sqlglot.parse_one("select 1 from t as a join t as b on a.s = b.i", dialect="spark")
    with pytest.raises(duckdb.Error, match="a comparison of VARCHAR and INTEGER"):
        table.execute(f"DESCRIBE {duck_text(add_type_checks(tree))}")


def test_checks_of_a_long_chain_stay_short() -> None:
    tree = sqlglot.parse_one("select " + " + ".join(["i"] * 60), dialect="spark")
    assert sum(1 for _ in add_type_checks(tree).walk()) < 200_000


def _bind(table: duckdb.DuckDBPyConnection, expression: str) -> None:
    tree = sqlglot.parse_one(f"select {expression} as x from t", dialect="spark")
    assert first_unproven(tree) is None
    table.execute(f"DESCRIBE {duck_text(add_type_checks(tree).transform(without_zone))}")


@pytest.mark.parametrize(
    ("condition", "is_trusted"),
    [
        ("exists (select max(a) from u where b = c)", False),
        ("i in (select max(a) from u where u.b = t.c)", False),
        ("not exists (select 1 from (select count(*) as n from u where u.b = t.c) as q where n = 0)", False),
        ("i in (select max(a) from u)", True),
        ("exists (select 1 from u where u.b = t.c and u.a = (select max(v.a) from u as v where v.b = u.b))", True),
        ("exists (select b from u where u.b = t.c group by b having count(*) > 1)", True),
    ],
)
def test_spark_has_no_row_of_an_aggregate_of_no_rows_that_the_row_around_it_chooses(
    condition: str, is_trusted: bool
) -> None:
    reason = first_unproven(sqlglot.parse_one(f"select i from t where {condition}", dialect="spark"))
    expected = None if is_trusted else "EXISTS or IN of an aggregate of rows that are chosen by the row around it"
    assert reason == expected
