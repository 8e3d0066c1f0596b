# ruff: noqa: E501
"""DuckDB computes what Spark computes: values and types."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal

import duckdb
import pytest
import sqlglot
from pyspark.sql import Row, SparkSession
from sqlglot import exp

from sqlmesh_like.analyze.expressions.synonyms import with_known_names
from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.duck_types import duck_type
from sqlmesh_like.duckdb.exact_sql import SETUP, Unproven, exact
from sqlmesh_like.names import Column
from tests.levels import IS_DEEP, count

COLUMNS = {
    "b": "boolean", "t": "tinyint", "i": "int", "j": "int", "n": "bigint", "d": "decimal(12,2)", "e": "decimal(15,4)",
    "f": "decimal(38,6)", "x": "double", "y": "double", "s": "string", "u": "string", "dt": "date", "du": "date", "ts": "timestamp",
}  # fmt: skip
STRUCT = "struct<a:int,B:double,c:struct<d:decimal(12,2),e:date,select:timestamp>>"
MADE = "case when k <> 4 then named_struct('a', i, 'B', {x}, 'c', case when k <> 5 then named_struct('d', d, 'e', dt, 'select', ts) end) end"
"""A struct of each row: of values, of NULLs, and NULL. Of two zeros a file's reader shows one."""
KEYS = (Column("k", "int"), Column("_sml_k", "string"))
NUMBERS = "case when k = 5 then filter(array(i), e -> e > 10000) when k <> 4 then array(i, null, j, 1) end"
TEXTS = "case when k = 5 then filter(array(s), e -> e = 'none') when k <> 4 then array(s, u, null, 'a') end"
"""Arrays of each row: of values, empty ones, and NULL."""
SCHEMA = (*(Column(name, type_) for name, type_ in COLUMNS.items()), *KEYS, Column("st", STRUCT),
          Column("ar", "array<int>"), Column("tx", "array<string>"), Column("_sml_key", "string"))  # fmt: skip
_BIG = Decimal("99999999999999999999999999999999.999999")
ROWS = [
    (True, 1, 1, 2, 1, Decimal("1.00"), Decimal("0.5000"), Decimal(1), 0.5, -0.25, "a", "b", date(2024, 2, 29), date(2024, 3, 1),
     datetime(2024, 2, 29, 12, 30, 1, 500000)),
    (False, -128, -7, 2, -(2**62), Decimal("-0.05"), Decimal("3.0000"), Decimal("-0.000001"), -0.0, 0.0, "", "%", date(1, 1, 1),
     date(1582, 10, 10), datetime(1969, 12, 31, 23, 59, 59, 999999)),
    (None,) * 15,
    (True, 127, 2**31 - 1, -1, 2**63 - 1, Decimal("9999999999.99"), Decimal("99999999999.9999"), _BIG, 1e300, float("inf"), "ß,:%/ñ🤦", "a",
     date(9999, 12, 31), date(1969, 12, 31), datetime(9999, 12, 31, 23, 59, 59)),
    (False, 0, 0, 0, 0, Decimal("0.00"), Decimal("0.0000"), Decimal(0), 0.1, 0.2, "A_b", "a%", date(2023, 1, 31),
     date(2024, 1, 31), datetime(2023, 1, 31)),
    (True, 5, 100, 3, 7, Decimal("12.34"), Decimal("-7.0001"), Decimal("2.5"), float("nan"), 1.0, "abc", "abc", date(1995, 3, 15),
     date(1995, 3, 15), datetime(1995, 3, 15, 0, 0, 0, 120000)),
    (False, 5, 100, 7, 7, Decimal("0.01"), Decimal("0.0003"), Decimal("0.333333"), 100.0, 3.0, "ab", "b", date(2024, 12, 31),
     date(2025, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 1)),
]  # fmt: skip
WRITTEN = """
d / 7L | d * 7S | 7Y + d | d % -7L | d - cast(7 as bigint) | 3S / d | i + j | i - j | i * j | i / j | n + i | n * n | t + t | i % j | -i | abs(j) | d + e | d - e | d * e | d / e | e / d | d * i | i - d
1 - d | (1 - d) * e | d * (1 - d) * (1 + d) | d / 3 | 100 * d / e | n / 7 | f + 1 | f * 2 | f / d | d / f | d + 0.05 | 0.5 * e
cast(i as string) | cast(n as string) | cast(d as string) | cast(e as string) | cast(f as string) | cast(dt as string) | cast(ts as string)
cast(b as string) | cast(i as bigint) | cast(i as decimal(20,3)) | cast(d as decimal(14,1)) | cast(d as decimal(3,2))
cast(e as decimal(12,0)) | cast(cast(i as double) / 160 as decimal(14,6)) | cast(f as decimal(10,2)) | cast(dt as timestamp) | cast(ts as date) | cast(i as double) | cast(f as bigint)
dt + interval 1 month | dt + interval 30 days | date_add(dt, 30) | dt - interval 90 days | dt + interval 1 year | dt + interval 360 days | ts - interval 3 hours | ts + interval 1 month | ts + interval 30 days | ts + interval 720 hours | ts + interval 1 year | ts + interval 360 days | date_add(dt, i)
date_add(dt, 3) | date_sub(dt, 3) | datediff(dt, du) | year(dt) | month(dt) | day(dt) | quarter(ts) | year(to_date(dt)) | to_date(ts)
n % i | i % n | t % n | unix_micros(ts) | timestamp_micros(i) | timestamp_micros(unix_micros(ts) - (unix_micros(ts) % 60000000 + 60000000) % 60000000)
date_trunc('month', dt) | date_trunc('hour', ts) | date_format(dt, 'yyyy-MM') | date_format(ts, 'yyyy-MM-dd HH:mm:ss')
length(s) | upper(s) | lower(u) | cast(f as double) | cast(e as double) | n / 7 | n > x | replace(s, '%', '%25') | s || u | substring(s, 2, 1) | substring(s, 1, 100) | locate('b', s) | locate('🤦', s) | substring(s, greatest(j, 1), greatest(i, 0)) | substring(u, greatest(locate('b', u), 1)) | cast(cast(abs(j) as string) as int) | s like 'a%' | s like '_b%' | s = u | s < u | s <=> u
i = j | i < d | d = e | d < f | n > e | dt < du | dt = '2024-02-29' | ts >= '1995-03-15 00:00:00' | ts < dt | s in ('a', 'b', null) | i in (1, 2)
d in (1, 0.01) | dt between '1995-01-01' and '2024-06-30' | d between 0.00 and 12.34 | s is null | not b | b and i > 1 | b or s is null
case when b then d else 0 end | case when i > 1 then e when b then d end | coalesce(d, 0) | coalesce(i, n) | if(b, i, 0) | nullif(i, 100)
x + y | x - y | x * y | x / y | -x | x * i | x + d | x > 0.1 | x = y | x <=> -0.0 | d > x | x * 0.5 | cast(d as double) | i / x | greatest(x, y)
sqrt(abs(x)) | sqrt(x) | sqrt(x * x) | f + f | f - f | f - d | i + f | cast(f as decimal(38,0)) * cast(e as decimal(38,0))
st | st['a'] | st['b'] | st['C']['D'] | st['c']['e'] | st['c']['select'] | st is null | st['c'] is null | case when b then st end | coalesce(st, st)
struct(i, d as D, s) | named_struct('select', dt, 'at', ts, 'in', struct(x as y, n)) | struct(i / 2 as half, year(dt) as y, null is null as z) | if(b, struct(t), null)
trunc(dt, 'MM') | trunc(ts, 'YEAR') | trunc(dt, 'quarter') | trunc(dt, 'week') | last_day(dt) | last_day(ts) | hour(ts) | minute(ts) | second(ts)
dayofweek(dt) | dayofweek(ts) | dayofyear(dt) | weekofyear(dt) | add_months(dt, 1) | add_months(dt, -j) | add_months(ts, t) | unix_timestamp(ts) | unix_timestamp(dt) | cast(ts as bigint)
cast(j as tinyint) | cast(i as smallint) | cast(n as int) | to_date(ts) | date_trunc('week', dt) | date_trunc('minute', ts) | date_trunc('second', ts) | trim(concat(' ', s, '  ')) | concat(s, u) | concat(s, '-', u, 'x')
contains(s, 'a') | startswith(u, s) | endswith(s, u) | case j when 1 then 'a' when 2 then s end | case dt when du then 1 else 0 end | case d when 1 then i end | floor(i) | ceil(d) | floor(e) | ceil(f)
months_between(dt, du) | months_between(du, dt) | floor(x) | ceil(x / 3) | cast(x as int) | cast(x * 1.5 as bigint) | f - 1 | f + d * 1.5 | 1 + f / 3 | ts = dt | dt <= ts | ts between dt and du | substring(s, locate('b', s) + 1, 3)
pmod(i, j) | pmod(t, -3) | pmod(n, 7) | width_bucket(x, -0.5, 1.5, 7) | width_bucket(d, 0, 12.34, 5) | width_bucket(i, 0, 100, 3) | substring_index(s, 'b', 1) | substring_index(u, '%', -1) | substring_index(s, ':', 2)
lpad(s, 6, 'xy') | rpad(s, 3) | lpad(u, 0, '0') | rpad(s, 5, '-') | sha2(s, 256) | sha2(u, 0) | s rlike '^a' | u rlike '[^a-z]' | s rlike 'b$' | s rlike '(ab)?c' | datediff(ts, dt) | datediff(dt, ts)
round(x, 1) | round(x * 7, 2) | round(x) | concat(s, i, d, b) | s || n || e || t
dt + interval 2 weeks | ts - interval 3 weeks | greatest(i, j) | least(s, u) | greatest(dt, du) | round(d, 1) | round(e, 2) | round(e) | round(f, 3)
"""  # fmt: skip
ARRAYS = """
ar | tx | array(i, j) | array(null, s) | array(st, null) | array(struct(i as a, d as b), null) | array(array(i), ar) | array(x, y) | array(dt, du) | array(ts) | array(d)
split(s, 'b') | split(u, '%') | split(s, '[.]') | split(concat(s, '@', u, '@@'), '\\\\@') | split(concat(s, '@@', u), '[@]') | sequence(1, abs(t) % 7) | transform(sequence(dt, dt + interval 3 days), e -> datediff(e, dt))
exists(ar, e -> e > 1) | exists(ar, e -> e > 1000000) | forall(ar, e -> e < 0) | forall(ar, e -> e <> 1 or e is null) | exists(tx, e -> e = u) | forall(tx, e -> e is not null) | exists(array(st), e -> e.a = 1) | exists(array(ar, null), e -> exists(e, g -> g = 1))
aggregate(ar, 0, (a, e) -> a + coalesce(e % 7, 1)) | aggregate(tx, '', (a, e) -> concat(a, coalesce(e, '-'))) | aggregate(tx, '', (a, e) -> concat(a, e), a -> length(a)) | aggregate(ar, 0L, (a, e) -> case when e > a then cast(e as bigint) else a end, a -> a / 2) | aggregate(array(dt, du), dt, (a, e) -> greatest(a, e)) | aggregate(ar, false, (a, e) -> a or e = 1)
sort_array(ar) | sort_array(ar, false) | array_sort(ar) | array_sort(tx) | sort_array(tx, false) | sort_array(array(x, y, null)) | array_sort(array(x, y, null)) | sort_array(array(dt, du), false)
transform(ar, e -> e + 1) | transform(tx, e -> concat(e, '!')) | transform(ar, e -> e * j) | transform(array(ar, null), e -> size(e)) | transform(ar, e -> struct(e as v, s as w)) | transform(array(st), e -> e.c.d)
transform(ar, e -> case when e is null then 0 else e end) | transform(array(ar), e -> transform(e, g -> g + size(e))) | transform(ar, e -> cast(e as string)) | transform(array(struct(i as a, s as b)), e -> e.B)
filter(ar, e -> e > 1) | filter(ar, e -> e is null) | filter(tx, e -> e like 'a%') | filter(array(st), e -> e.a > 0) | size(ar) | size(filter(tx, e -> e <> u)) | size(split(s, '%'))
map('a', i, 'abc', j)[s] | element_at(map('b', d, '%', d), u) | map('a', 'x')['a'] | ar[0] | ar[1] | ar[7] | tx[2] | element_at(ar, 1) | element_at(ar, -1) | element_at(ar, 9) | array(st)[0] | array(st)[0].a | array(ar)[0][0] | element_at(tx, -2)
array_contains(ar, 1) | array_contains(ar, j) | array_contains(tx, u) | array_contains(array(d), d) | array_contains(array(dt, du), dt) | array_contains(array(n), i) | arrays_overlap(ar, array(1, 3)) | arrays_overlap(ar, array(77))
arrays_overlap(tx, array(u)) | arrays_overlap(tx, tx) | arrays_overlap(ar, filter(ar, e -> e > 10000)) | array_join(tx, '-') | array_join(array_sort(tx), '') | concat_ws(',', tx) | concat_ws('', sort_array(tx)) | array_join(tx, u)
coalesce(ar, array(7)) | if(b, ar, null) | case when i > 1 then tx when b then array(s) end | case when size(ar) > 0 then ar else array(null) end | ar is null | struct(ar as a, tx) | nullif(size(ar), 0)
"""
COLLECTED = """
sort_array(collect_list(i)) | sort_array(collect_list(x), false) | array_sort(collect_list(s)) | sort_array(collect_set(s)) | array_sort(collect_set(d)) | size(collect_list(x)) | size(collect_set(i))
transform(array_sort(collect_list(case when not s is null then struct(_sml_key as _sml_k, s as _sml_v) end)), e -> e._sml_v) | transform(array_sort(collect_list(struct(_sml_key as _sml_k, st as _sml_v))), e -> e._sml_v)
array_join(transform(sort_array(collect_set(dt)), e -> cast(e as string)), ',') | concat_ws(';', sort_array(collect_set(u))) | count(ar) | count(distinct ar) | count(distinct tx) | max_by(ar, _sml_key) | min_by(tx, case when b then _sml_key end)
sort_array(collect_list(dt)) | array_sort(collect_set(ts)) | sort_array(collect_list(case when i > 0 then s end)) | array_sort(collect_set(b)) | size(collect_set(case when i > 1000 then s end))
"""
AGGREGATES = """
count(st) | count(st['c']) | count(distinct st) | count(distinct struct(b, x)) | sum(st['a']) | max(st['B']) | count(distinct st['c'])
percentile(i, 0.3) | percentile(i, array(0, 0.25, 0.5, 1)) | median(d) | percentile(x, 0.9) | median(n) | percentile_cont(0.7) within group (order by i desc) | percentile(cast(e as decimal(12,1)), 0.1)
percentile_disc(0.5) within group (order by i) | percentile_disc(0) within group (order by d) | percentile_disc(1) within group (order by d desc) | percentile_disc(0.3) within group (order by x) | percentile_disc(0.75) within group (order by t desc) | percentile_disc(array(0.1, 0.29)) within group (order by j)
avg(i) | avg(n) | avg(t) | avg(j) | avg(cast(d as decimal(10,2))) | avg(cast(e as decimal(8,3))) | count(distinct s, b) | count(distinct i, x, dt)
count(*) | count(d) | count(distinct s) | sum(i) | sum(n) | sum(d) | sum(e) | sum(f) | sum(case when b then d else 0 end) | min(s) | max(dt)
min(e) | max(ts) | min(b) | count_if(b) | sum(d * (1 - d)) | sum(d) / sum(e) | sum(i) / count(*) | avg(d) | avg(e) | sum(d) filter (where b)
count(*) filter (where i > 1) | cast(sum(d) as decimal(38,2)) / cast(count(d) as decimal(20,0)) | bool_and(b) | every(i > 0) | 100 * sum(d) / sum(e)
sum(distinct i) | cast(sum(i) as double) / count(i) | sum(x) | min(x) | max(x) | sum(x * i) | count(distinct x) | sum(x) / count(x) | 0.2 * avg(e) | max(d) - min(d)
"""
FRAMED = """
sum(case when abs(f) < 1000 then f end) | nth_value(s, 2) | nth_value(d, 1) | avg(i) | avg(t) | avg(cast(d as decimal(9,2))) | count(*) | count(s) | count_if(b) | sum(t) | sum(i) | sum(n) | sum(d) | sum(e) | sum(i * 2) | avg(d) | avg(e) | min(i) | max(s) | min(d) | max(x) | min(x) | min(dt)
sum(dayofweek(dt)) | sum(coalesce(dayofweek(du), 7)) | avg(dayofweek(dt)) | max(ts) | min(b) | bool_and(b) | bool_or(i > 0) | first_value(s) | last_value(d) | first(i) ignore nulls | last(s, true) | last_value(x) ignore nulls | first_value(b)
"""
UNFRAMED = """
row_number() | rank() | dense_rank() | percent_rank() | cume_dist() | ntile(3) | ntile(100) | lag(s) | lead(d, 2) | lag(i, 1, 0) | lead(n, 3, -1) | lag(x, 1, x)
lag(named_struct('i', i, 'd', d)) | lead(struct(s), 2) ignore nulls | lag(d, 2, null) | lead(s, 1, 'none') | lag(i) ignore nulls | lead(s, 2) ignore nulls | lag(dt, 1, date '2024-01-01') ignore nulls | lead(i, 100, 7) | lag(b, 1, true)
"""
FRAMES = """
| rows between unbounded preceding and current row | rows between 2 preceding and 1 following | rows 3 preceding | rows between 1 following and 3 following
| rows between 5 preceding and 2 preceding | rows between current row and unbounded following | range between unbounded preceding and current row
| range between current row and unbounded following | range between current row and current row
| rows between unbounded preceding and unbounded following
"""
DISTANCES = {
    "j": (
        "0 preceding and 1 following",
        "1 preceding and current row",
        "unbounded preceding and 3 preceding",
        "2 following and 5 following",
    ),
    "n": ("3 preceding and current row", "1 following and unbounded following"),
    "du": (
        "2 preceding and 40 following",
        "400 preceding and current row",
        "current row and 5 following",
    ),
    "ts": (
        "interval 90 minutes preceding and interval 1440 minutes following",
        "interval '2' days preceding and interval 1 day preceding",
    ),
    "d": ("1 preceding and 0.5 following", "0.05 preceding and 12.34 following"),
    "e": ("7 preceding and 0.0001 following",),
}
"""Frames by RANGE, by the value that orders the rows."""
ORDERS = ("y", "y desc", "j desc nulls first", "u nulls last", "du", "b, j desc", "y, u desc")
PARTITIONS = (
    "partition by struct(t, s)",
    "partition by named_struct('y', y, 'b', b)",
    "",
    "partition by b",
    "partition by t, s",
    "partition by y",
    "partition by j",
)
CASES = 3000 if IS_DEEP else 300


def _items(text: str) -> list[str]:
    return [item.strip() for line in text.strip().splitlines() for item in line.split("|") if item.strip()]


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(duckdb.connect(":memory:")) as db:
        db.execute("SET TimeZone = 'UTC'")
        for statement in SETUP:
            db.execute(statement)
        columns = ", ".join(f"{name} {duck_type(type_)}" for name, type_ in COLUMNS.items())
        db.execute(f"CREATE TABLE r ({columns}, k INT, _sml_k VARCHAR)")
        for number, row in enumerate(ROWS):
            key = str(number * 7 % 10)
            db.execute(f"INSERT INTO r VALUES ({', '.join('?' * (len(row) + 2))})", [*row, number, key])
        made = [sqlglot.transpile(e, read="spark", write="duckdb")[0] for e in (MADE.format(x="x + 0"), NUMBERS, TEXTS)]
        db.execute(f"CREATE TABLE v AS SELECT *, CAST({made[0]} AS {duck_type(STRUCT)}) AS st, {made[1]} AS ar,"
                   f" {made[2]} AS tx, _sml_k AS _sml_key FROM r")  # fmt: skip
        yield db


@pytest.fixture(scope="module")
def values(spark: SparkSession) -> str:
    texts = [(*(None if value is None else str(value) for value in row), number) for number, row in enumerate(ROWS)]
    typed = [f"cast({name} as {type_}) as {name}" for name, type_ in COLUMNS.items()]
    frame = spark.createDataFrame(texts, ", ".join(f"{name} string" for name in COLUMNS) + ", k int")
    frame.selectExpr(*typed, "k", "cast(k * 7 % 10 as string) as _sml_k").createOrReplaceTempView("r")
    arrays = f"{NUMBERS} as ar, {TEXTS} as tx, _sml_k as _sml_key"
    spark.sql(f"select *, {MADE.format(x='x')} as st, {arrays} from r").createOrReplaceTempView("v")
    return "v"


def compare(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, items: list[str], tail: str, table: str = "v"
) -> tuple[int, int]:
    """Each item in both engines; how many DuckDB computed, and how many of them failed there by value."""
    proven: list[tuple[str, str, str]] = []
    for item in items:
        text = f"select {item} as x from v {tail}" if tail else f"select k, {item} as x from {table}"
        query = with_known_names(sqlglot.parse_one(text, dialect=SPARK))
        assert isinstance(query, exp.Query)
        try:
            made = exact(query, lambda _: SCHEMA)
        except Unproven:
            continue
        proven.append((item, made.sql, made.columns[-1].type or ""))
    names = [f"{item} as x{number}" for number, (item, _, _) in enumerate(proven)]
    keys = [] if tail else ["k"]
    frame = spark.sql(f"select {', '.join([*keys, *names])} from {table} {tail}")
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    numbers = {"date": "unix_date({})", "timestamp": "unix_micros({})"}  # Python has no year 10,000
    shown = frame.selectExpr(*[f"{numbers.get(type_, '{}').format(name)} as {name}" for name, type_ in types.items()])
    rows = [row.asDict() for row in shown.collect()]
    failed = 0
    for number, (item, sql, type_) in enumerate(proven):
        stored_type = types[f"x{number}"]
        assert type_ in (stored_type, "null"), (item, type_, stored_type)
        value = "x" if stored_type == "void" else f"CAST(x AS {duck_type(stored_type)})"
        value = {"date": f"{value} - DATE '1970-01-01'", "timestamp": f"epoch_us({value})"}.get(stored_type, value)
        try:
            mine = duck.execute(f"SELECT {'k, ' if keys else ''}{value} FROM ({sql})").fetchall()
        except duckdb.Error:
            failed += 1
            continue
        theirs = {row["k"] if keys else 0: row[f"x{number}"] for row in rows}
        own = {row[0] if keys else 0: row[-1] for row in mine}
        assert _plain(own) == _plain(theirs), (item, sql)
    return len(proven), failed


def _plain(values: dict[object, object]) -> dict[object, object]:
    """Doubles by all their digits, but for the sign of zero."""
    return {key: _plain_value(value) for key, value in values.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, dict):
        return _plain(value)
    if isinstance(value, list):
        return [_plain_value(each) for each in value]
    return repr(value + 0.0) if isinstance(value, float) else value


def test_written_expressions(spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str) -> None:
    items = _items(WRITTEN)
    proven, failed = compare(spark, duck, items, "")
    assert proven > len(items) * 0.85
    assert failed < proven / 3  # the rows are chosen to overflow


MEMBERS = r"""
{"a":1,"b":{"c":"x"}}
{"a":1.50,"b":{"c":-0.0}}
{"a":100.0,"b":{"c":0.001}}
{"a":1e3,"b":{"c":12345678.5}}
{"a":-0,"b":{"c":9223372036854775808}}
{"a":12345678901234567890123,"b":{"c":0.00012}}
{"a":true,"b":{"c":null}}
{"a":null,"a":2,"b":{"c":1,"c":2}}
{"a":null,"b":null}
{"a":"","b":"c"}
{"a":"a \"quote\" \\ \/ \n \u00e9 é🤦 \ud83e\udd26","b":{"c":[1, 2.0]}}
{"a":{"x" : 1, "y":[]},"b":[{"c":1}]}
{"\u0061":7,"b":{"C":1}}
{ "a" : "spaced" , "b" : { "c" : false } }
{"a":1,}
{"a":[1,],"b":{"c":3}}
{"a":NaN}
{"a":1,"b":{"c":Infinity}}
{"a":1} rest
{"a":1
{'a':1}
{"a":01}
{"a":"tab	"}
{"a":0.1,"b":{"c":0.30000000000000004}}
{"a":4503599627370497.5,"b":{"c":1234567.125}}
{"a":1.0000000000000000001,"b":{"c":2.5E-3}}
{"a":"nan, inf: info","b":{"c":"[,]"}}
{}
[]
[{"a":1}]
"a"
5
null
"""
PATHS = ("$.a", "$.b", "$.b.c", "$.a.x", "$.b.C")


NUMBERS_AND_TIMES = """
1|-1|007|1.5|-0|-0.0|+1| 1|1 |1e3|1.5e2|.5|5.|1_000|0x1F|1d|1f|1L|NaN|inf|-Infinity|123456789|1234567890|2147483648|-2147483648|9223372036854775807
999999999999999999|99999999999.99|9999999999.99|9999999999.999|0.005|0.015|1.2345|00000000000000000001.25|abc|a1|1a|e|E5|é|١|true|12.7|-12.7|1.7976931348623157e308
123456789012345.123456789012345|0.1|0.30000000000000004|2024-02-29|2023-02-29|2024-2-9|2024-02|2024|2024-13-01|2024-00-10|2024-01-32|0000-01-01|12024-01-01
2024-02-29 10:00:00|2024-02-29T23:59:59.999999|2024-02-29 24:00:00|2024-02-29 10:60:00|2024-02-29 10:00:60|2024-02-29 10:00:00.1234567|2024-02-29 10:00|2024-02-29 10:00:00Z
2024-02-29 10:00:00+02:00| 2024-02-29|2999-12-31 23:59:59.5|1000-01-01|1582-10-10|now|today|epoch|-|.|,|$5|5%
"""
TYPES = (
    "int",
    "bigint",
    "double",
    "decimal(12,2)",
    "decimal(3,3)",
    "decimal(38,10)",
    "decimal(5,0)",
    "date",
    "timestamp",
)


def test_casts_of_texts(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> None:
    texts = ["", " ", *(text for line in NUMBERS_AND_TIMES.strip("\n").splitlines() for text in line.split("|"))]
    spark.createDataFrame(list(enumerate(texts)), "k int, u string").createOrReplaceTempView("texts")
    items = [*(f"cast(u as {type_})" for type_ in TYPES), "to_date(u)"]
    shown = [f"cast({item} as string)" if "date" in item or "time" in item else item for item in items]
    theirs = {row[0]: row[1:] for row in spark.sql(f"select k, {', '.join(shown)} from texts").collect()}
    schema, answered = (Column("k", "int"), Column("u", "string")), 0
    for number, item in enumerate(items):
        made = exact(sqlglot.parse_one(f"select {item} as x from texts", dialect=SPARK), lambda _: schema)
        value = "CAST(x AS VARCHAR)" if shown[number] != item else "x"
        for key, text in enumerate(texts):
            given = f"WITH texts AS (SELECT CAST(? AS VARCHAR) AS u) SELECT {value} FROM ({made.sql})"
            try:
                rows = duck.execute(given, [text]).fetchall()
            except duckdb.Error:
                continue
            answered += 1
            assert [_plain_value(rows[0][0])] == [_plain_value(theirs[key][number])], (text, item)
    assert answered > len(texts) * 2


OF_DOUBLES = (
    "cast(x as string)", "concat(x, '-', f, i)", "x || s", "cast(f as string)", "cast(f as double)", "cast(x as decimal(12,2))",
    "cast(x as decimal(18,2))", "cast(x as decimal(38,18))", "cast(x as decimal(20,0))", "cast(f as decimal(18,4))",
    "cast(x * 3 as decimal(24,6))", "round(x, 2)", "round(x)", "round(x / 3, 12)",
)  # fmt: skip


def test_texts_decimals_and_roundings_of_doubles(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> None:
    dice = random.Random(11)
    short = [
        dice.randrange(10 ** dice.randrange(1, 17)) / 10 ** dice.randrange(0, 16) for _ in range(count(60, 60, 5000))
    ]
    ties = [(dice.randrange(10**8) * 10 + 5) / 10 ** dice.randrange(1, 9) for _ in range(count(30, 30, 5000))]
    around = [
        math.nextafter(value, value + direction)
        for value in (*ties, 1e-3, 1e7, 1.0, 2.0**52)
        for direction in (-1, 0, 1)
    ]
    odd = [
        2.0**-9,
        2.0**-24,
        2.0**-44,
        2.0**52,
        1e16,
        1e23,
        2e23,
        5e-324,
        1.7e308,
        math.inf,
        -math.inf,
        math.nan,
        0.0,
        1e-5,
        2e-3,
    ]
    doubles = [sign * value for value in (*short, *around, *odd) for sign in (1, -1) if sign * value or sign == 1]
    frame = spark.createDataFrame([(k, x, "s", 7) for k, x in enumerate(doubles)], "k int, x double, s string, i int")
    frame.selectExpr("*", "cast(x as float) as f").createOrReplaceTempView("doubles")
    theirs = {row[0]: row[1:] for row in spark.sql(f"select k, f, {', '.join(OF_DOUBLES)} from doubles").collect()}
    schema = tuple(
        Column(name, type_) for name, type_ in (("x", "double"), ("s", "string"), ("i", "int"), ("f", "float"))
    )
    answered = dict.fromkeys(OF_DOUBLES, 0)
    for number, item in enumerate(OF_DOUBLES, 1):
        try:
            made = exact(sqlglot.parse_one(f"select {item} as x from doubles", dialect="spark"), lambda _: schema)
        except Unproven:
            assert "f" in item
            continue
        given = "SELECT CAST(? AS DOUBLE) AS x, 's' AS s, 7 AS i, CAST(? AS FLOAT) AS f"
        for k, x in enumerate(doubles):
            try:
                rows = duck.execute(f"WITH doubles AS ({given}) {made.sql}", [x, theirs[k][0]]).fetchall()
            except duckdb.Error:
                continue
            answered[item] += 1
            assert [_plain_value(rows[0][0])] == [_plain_value(theirs[k][number])], (x, item)
    texts = {item for item in OF_DOUBLES if "decimal" not in item and "x" in item}
    assert answered["cast(f as string)"] == 0 and answered["round(x, 2)"] == answered["cast(f as double)"] == len(
        doubles
    )
    assert all(
        answered[item] > len(doubles) / (3 if item in texts else 1.3) for item in OF_DOUBLES[:1] + OF_DOUBLES[5:]
    )


def test_members_of_json(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> None:
    deep = f'{{"a":{"[" * 1100}{"]" * 1100},"b":{{"c":1}}}}'
    long = f'{{"a":{"9" * 1100},"b":{{"c":2}}}}'
    texts = [None, "", " ", deep, long, '{"a":"\x01"}', *MEMBERS.strip("\n").splitlines()]
    spark.createDataFrame(list(enumerate(texts)), "k int, doc string").createOrReplaceTempView("docs")
    paths = [f"get_json_object(doc, '{path}')" for path in PATHS]
    theirs = {row[0]: row[1:] for row in spark.sql(f"select k, {', '.join(paths)} from docs").collect()}
    schema, answered = (Column("k", "int"), Column("doc", "string")), 0
    for number, path in enumerate(paths):
        made = exact(sqlglot.parse_one(f"select {path} as x from docs", dialect=SPARK), lambda _: schema)
        for key, text in enumerate(texts):
            try:
                rows = duck.execute(f"WITH docs AS (SELECT CAST(? AS VARCHAR) AS doc) {made.sql}", [text]).fetchall()
            except duckdb.Error:
                continue
            answered += 1
            assert rows == [(theirs[key][number],)], (text, path)
    assert answered > 90  # the others are no JSON, or have a member that is left to Spark


def test_aggregates_of_all_rows(spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str) -> None:
    items = _items(AGGREGATES)
    for condition in ("where k not in (1, 3)", "where k = 2", "where false", "where abs(i) < 1000"):
        proven, failed = compare(spark, duck, items, condition)
        assert proven > len(items) * 0.85
        assert failed <= 2, condition


def test_arrays_and_what_is_made_of_them(spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str) -> None:
    items = [item.replace("@", "|") for item in _items(ARRAYS)]  # `|` separates them
    proven, failed = compare(spark, duck, items, "")
    assert proven == len(items) and failed <= 5  # whole numbers and days that leave their type
    for condition in ("where k not in (1, 3)", "where k = 2", "where false"):
        proven, failed = compare(spark, duck, _items(COLLECTED), condition)
        assert (proven, failed) == (len(_items(COLLECTED)), 0), condition


SEQUENCES = (
    "sequence(j, j + 4)", "sequence(j, 7, 2)", "sequence(cast(j as bigint), 9L)", "sequence(dt, dt + interval 40 days)",
    "sequence(dt, dt + interval 100 days, interval 1 week)", "sequence(dt, dt + interval 400 days, interval 1 month)",
    "sequence(date '2023-01-31', date '2024-03-30', interval 2 months)", "sequence(dt, du, interval 1 year)",
    "array(j, i, null)", "ar", "array(struct(j as a, s as b), struct(1 as a, u as b))",
)  # fmt: skip


def test_elements_of_sequences_and_of_written_arrays(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str
) -> None:
    for each in SEQUENCES:
        items = ["count(*)", "sum(at)", "count(one)"]
        items += ["max(one)", "min(one)"] if "struct" not in each else ["max(one['a'])"]
        tail = f"lateral view posexplode({each}) l as at, one where k not in (1, 3) and j is not null"
        assert compare(spark, duck, items, tail) == (len(items), 0), each


def test_values_of_the_first_and_the_last_row(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str
) -> None:
    order = "case when not {0} is null then struct({0} as o, _sml_k as k) end"
    items = [f"{name}({v}, {order.format(o)})" for name in ("max_by", "min_by") for o in COLUMNS for v in COLUMNS]
    items += [f"{name}({v}, {key})" for name in ("max_by", "min_by") for v in COLUMNS
              for key in ("_sml_k", "case when b then _sml_k end", "case when not s is null then _sml_k end")]  # fmt: skip
    items += [f"{name}({v}, _sml_k)" for name in ("max_by", "min_by") for v in ("st", "struct(i, s)", "st['c']")]
    for condition in ("where true", "where false", "where k < 3", "where k > 2 and b"):
        assert compare(spark, duck, items, condition) == (len(items), 0)


@pytest.mark.release
def test_windows_over_ties_and_over_all_frames(
    spark: SparkSession, duck: duckdb.DuckDBPyConnection, values: str
) -> None:
    pairs = (
        "select a.k * 7 + o.k as k, a.b, a.t, a.i, a.n, a.d, a.e, a.f, a.x, a.s, a.dt, a.ts, o.j, o.x + o.i * 0 as y,"
        " o.u, o.du, cast((a.k * 7 + o.k) * 5 % 49 as {text}) as _sml_k from v a, v o"
    )
    spark.sql(pairs.format(text="string")).createOrReplaceTempView("w")
    duck.execute(f"CREATE TABLE w AS {pairs.format(text='VARCHAR')}")
    draw, items = random.Random(11), list[str]()
    for _ in range(CASES):
        function, order, partition = (draw.choice(each) for each in (_items(FRAMED + UNFRAMED), ORDERS, PARTITIONS))
        frame = draw.choice(FRAMES.split("|")).strip() if function in _items(FRAMED) else ""
        is_tied = frame.startswith("rows") or function == "row_number()"
        key = ", _sml_k" if is_tied or draw.random() < 0.6 else ""
        items.append(f"{function} over ({partition} order by {order}{key} {frame})")
    frames = [(order, frame) for order, each in DISTANCES.items() for frame in each]
    functions = [item for item in _items(FRAMED) if "first" not in item and "last" not in item]
    for _ in range(CASES):
        (order, frame), direction = draw.choice(frames), draw.choice(("", "desc", "nulls last", "desc nulls first"))
        window = f"{draw.choice(PARTITIONS)} order by {order} {direction} range between {frame}"
        items.append(f"{draw.choice(functions)} over ({window})")
    items += [f"{function} over (partition by y)" for function in _items(FRAMED) if "(" in function]
    # A plan is serialized by recursion: with all of these windows it overflows the stack of Java.
    parts = [compare(spark, duck, items[at : at + 100], "", "w") for at in range(0, len(items), 100)]
    proven, failed = map(sum, zip(*parts, strict=True))
    assert proven > len(items) * 0.8 and failed < proven / 10
