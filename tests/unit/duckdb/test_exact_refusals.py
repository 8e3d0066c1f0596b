"""What the exact form of a query does not take: whatever DuckDB may compute otherwise than Spark, with the reason."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb.exact_sql import Unproven, exact
from sqlmesh_like.names import Schema
from tests.properties.lake import schema

TABLES = {
    "t": schema(
        i="int", l="bigint", d="decimal(10,2)", w="decimal(38,10)", s="string", b="boolean", dt="date", ts="timestamp",
        f="double", bin="binary", arr="array<int>", m="map<string,int>", st="struct<p:int>", sf="struct<p:float>",
        sa="struct<p:array<map<int,int>>>", _sml_key="string",
    ),
    "u": schema(i="int", k="string"),
}  # fmt: skip
_OF_AGGREGATE = "EXISTS or IN of an aggregate of rows that are chosen by the row around it"
UNPROVEN = {
    "select i as n from t where exists (select max(u.i) from u where u.k = t.s)": _OF_AGGREGATE,
    "select i as n from t where b or not exists (select count(*) from u where k = s)": _OF_AGGREGATE,
    "select i as n from t where exists (select count(*) from u where u.k = t.s having count(*) = 0)": _OF_AGGREGATE,
    "select i as n from t where i not in (select max(u.i) from u where u.k = t.s)": _OF_AGGREGATE,
    "select i as n from t where exists (select 1 from (select count(*) as c from u where u.k = t.s) as q where c = 0)":
        _OF_AGGREGATE,
    "select (select count(*) from u where u.k = t.s having count(*) > 1) as n from t":
        "an aggregate with HAVING of rows chosen by the row around it",
    "select (select max(q.c) from (select count(*) as c from u where u.k = t.s) as q) as n from t": _OF_AGGREGATE,
    "select i as n from t where exists (select 1 from u left join u as v on v.k = t.s where u.i = t.i)":
        "a query that reads the row around it elsewhere than in its WHERE",
    "select (select u.i from u where u.k = t.s) as n from t":
        "a value of rows chosen by the row around it that is not an aggregate",
    "select (select max(u.i + t.i) from u where u.k = t.s) as n from t":
        "a query that reads the row around it elsewhere than in its WHERE",
    "select count(i, l) as n from t": "COUNT of several values",
    "select avg(distinct i) as n from t": "AVG of distinct values",
    "select avg(w) as n from t": "AVG of decimals of 38 digits",
    "select max(i, 3) as n from t": "MIN or MAX of several values",
    "select min(m) as n from t": "a value of type map<string,int>",
    "select sum(distinct i, l) as n from t": "an aggregate of several distinct values",
    "select avg(i) filter (where b) as n from t": "AVG with FILTER",
    "select sum(f) over (order by i) as n from t": "a value of type double",
    "select sum(i) over (order by l rows 3 preceding) as n from t": "a window over rows that may tie",
    "select last_value(i) over (order by l rows 3 preceding) as n from t": "a window over rows that may tie",
    "select lag(i) over (order by l) as n from t": "a window over rows that may tie",
    "select first_value(i) over (partition by l) as n from t": "a window over rows that may tie",
    "select ntile(2) over (order by i) as n from t": "a window over rows that may tie",
    "select ntile(1 + 1) over (order by i, _sml_key) as n from t": "NTILE of other than a number as written",
    "select lag(i, -1) over (order by l, _sml_key) as n from t": "LAG by other than a number as written",
    "select lead(i, 1, 1.5) over (order by l, _sml_key) as n from t": "LEAD of int or decimal(2,1)",
    "select lead(i, 1, 3000000000) over (order by l, _sml_key) as n from t": "LEAD of int or bigint",
    "select lag(d, 1, 0) over (order by l, _sml_key) as n from t": "LAG of decimal(10,2) or int",
    "select lag(null) over (order by l, _sml_key) as n from t": "a window over NULL",
    "select sum(i) over (order by f range between 1 preceding and current row) as n from t":
        "a frame by RANGE with a distance from double",
    "select sum(i) over (order by i, l range between 1 preceding and current row) as n from t":
        "a distance from several values, or from none",
    "select sum(i) over (order by l range between 1.5 preceding and current row) as n from t":
        "a distance from bigint that is not a number as written",
    "select sum(i) over (order by dt range between interval 1 day preceding and current row) as n from t":
        "a distance from dates by an interval",
    "select sum(i) over (order by ts range between 1 preceding and current row) as n from t":
        "a distance from timestamps by other than whole days or smaller units",
    "select sum(i) over (order by ts range between interval '1 2' day to hour preceding and current row) as n from t":
        "a distance from timestamps by other than whole days or smaller units",
    "select sum(i) over (order by d range between 0.001 preceding and current row) as n from t":
        "a distance from decimal(10,2) that this type does not hold",
    "select sum(i) over (order by d range between 123456789 preceding and current row) as n from t":
        "a distance from decimal(10,2) that this type does not hold",
    "select first_value(i) over (order by l range between 1 preceding and current row) as n from t":
        "a window over rows that may tie",
    "select sum(i) over (order by l, _sml_key rows between i preceding and current row) as n from t":
        "a frame by ROWS with a computed distance",
    "select nth_value(i, 2) over (order by l) as n from t": "a window over rows that may tie",
    "select nth_value(i, 1 + 1) over (order by l, _sml_key) as n from t":
        "NTH_VALUE of other than a number as written",
    "select get_json_object(s, '$.a[0]') as n from t": "GET_JSON_OBJECT of a path that is not one of names as written",
    "select get_json_object(s, s) as n from t": "GET_JSON_OBJECT of a path that is not one of names as written",
    "select width_bucket(l, 0, 9, 3) as n from t": "WIDTH_BUCKET of bigint",
    "select width_bucket(f, 9, 0, 3) as n from t": "WIDTH_BUCKET of other than a range upwards as it is written",
    "select width_bucket(f, 0, 9, i) as n from t": "WIDTH_BUCKET of other than a range upwards as it is written",
    "select aggregate(arr, 0, (a, e) -> a + 1L) as n from t": "AGGREGATE from int to bigint",
    "select aggregate(arr, null, (a, e) -> a) as n from t": "AGGREGATE from NULL",
    "select exists(arr, i -> i > 1 and t.i = 2) as n from t": "the name i, of a column or of an element",
    "select exists(arr, e -> e) as n from t": "a condition that is not a boolean",
    "select pmod(f, 3) as n from t": "PMOD of other than whole numbers",
    "select substring_index(s, 'ab', 1) as n from t": "SUBSTRING_INDEX at other than a single sign as written",
    "select substring_index(s, 'a', i) as n from t": "SUBSTRING_INDEX of other than a number as written",
    "select lpad(s, i, '0') as n from t": "LPAD or RPAD to other than a small number as written",
    "select rpad(s, 3, '') as n from t": "LPAD or RPAD by other than a written text",
    "select sha2(s, 512) as n from t": "SHA2 of other than 256 bits",
    "select s rlike '(?i)a' as n from t":
        "a regular expression that is computed, has a backslash or what Java has alone",
    "select sum(i) filter (where b) over (order by l) as n from t": "the window of FILTER",
    "select count(distinct i) over (partition by l) as n from t": "a window of distinct values",
    "select max(m) over (partition by l) as n from t": "a value of type map<string,int>",
    "select max_by(i, dt) as n from t": "MAX_BY of rows that may tie",
    "select min_by(i, struct(dt as o, s as k)) as n from t": "MIN_BY of rows that may tie",
    "select max_by(i, struct(dt as o, _sml_key as k)) as n from t": "MAX_BY by several values that may be NULL",
    "select max_by(i, case when dt is not null then struct(dt as o, s as p, _sml_key as k) end) as n from t":
        "MAX_BY by several values that may be NULL",
    "select max_by(i, case when dt is null then struct(dt as o, _sml_key as k) end) as n from t":
        "MAX_BY by several values that may be NULL",
    "select max(st) as n from t": "the order of struct<p:int>",
    "select greatest(st, st) as n from t": "the order of struct<p:int>",
    "select st = st as n from t": "the order of struct<p:int>",
    "select st in (st) as n from t": "the order of struct<p:int>",
    "select nullif(st, st) as n from t": "the order of struct<p:int>",
    "select rank() over (order by st) as n from t": "the order of struct<p:int>",
    "select max_by(i, case when st is not null then struct(st as o, _sml_key as k) end) as n from t":
        "the order of struct<p:int>",
    "select distinct sf from t": "equality of struct<p:float>",
    "select sa as n from t": "a value of type map<int,int>",
    "select struct(m as a) as n from t": "a value of type map<string,int>",
    "select struct(i as a, l as A) as n from t": "a struct with two fields of one name",
    "select struct(i as `a b`) as n from t": "a struct with the field 'a b' of type int",
    "select named_struct('a', null) as n from t": "a struct with the field 'a' of type null",
    "select map('a', 1, 'a', 2)[s] as n from t": "a map of other keys than different texts as written",
    "select map(1, 'a')[i] as n from t": "a map of other keys than different texts as written",
    "select map('a', 1, 'b', 1.5)[s] as n from t": "a map of values of several types",
    "select m['p'] as n from t": "a value of type map<string,int>",
    "select st['q'] as n from t": "an item of other than a struct",
    "select cast(null as struct<p:int>) as n from t": "a cast to struct<p: int>",
    "select cast(st as string) as n from t": "a value of type struct<p:int>",
    "select coalesce(st, struct(i as P)) as n from t": "a value of type struct<p:int>",
    "select p from t lateral view posexplode(array(i, s)) v as p, e": "an array of no type, or of several",
    "select p from t lateral view posexplode(array(i)) v": "a LATERAL VIEW without names of its own",
    "select e from t lateral view explode(sequence(i, 9, -1)) v as e":
        "SEQUENCE by other than a positive number as written",
    "select e from t lateral view explode(sequence(dt, dt, interval 1 hour)) v as e":
        "SEQUENCE of dates by other than days or months",
    "select e from t lateral view explode(sequence(ts, ts)) v as e":
        "SEQUENCE of other than whole numbers or dates of one type",
    "select trunc(dt, 'Q') as n from t": "TRUNC of other than a date to Q",
    "select date_trunc('q', ts) as n from t": "DATE_TRUNC to Q",
    "select date_trunc(s, ts) as n from t": "function DATE_TRUNC",
    "select trunc(dt, 'decade') as n from t": "TRUNC of other than a date to DECADE",
    "select hour(dt) as n from t": "HOUR of other than a timestamp",
    "select unix_timestamp(s) as n from t": "UNIX_TIMESTAMP of other than a date",
    "select add_months(dt, l) as n from t": "ADD_MONTHS of other than a date and a whole number",
    "select concat(s, arr) as n from t": "a value of type array<int>",
    "select cast(f as decimal(38,20)) as n from t": "a cast of double to decimal(38,20)",
    "select round(f, 19) as n from t": "ROUND to many digits",
    "select cast(f as smallint) as n from t": "a cast of double to smallint",
    "select max_by(m, _sml_key) as n from t": "a value of type map<string,int>",
    "select s is true as n from t": "IS of other than NULL",
    "select b is true as n from t": "IS of other than NULL",
    "select dt = 'soon' as n from t": "a text beside a date",
    "select i = '5' as n from t": "a value of type string",
    "select coalesce(i in (select i from u), b) as n from t": "IN of a query as a value",
    "select i in (1, 'x') as n from t": "a value of type string",
    "select dt in (1) as n from t": "a value of type date",
    "select (select i, k from u) as n from t": "a subquery of several columns",
    "select s like k as n from t join u on t.i = u.i": "LIKE with a pattern that is computed or has a backslash",
    "select greatest(i, s) as n from t": "GREATEST or LEAST of other types",
    "select greatest(s, dt) as n from t": "GREATEST or LEAST of other types",
    "select st.p as n from t": "no column p",
    "select f % 2 as n from t": "a remainder of other than whole numbers",
    "select round(d, i) as n from t": "ROUND to computed digits",
    "select i from t join u on t.i = u.i": "the column i is of several tables",
    "select zz from t": "no column zz",
    "values (1)": "form VALUES",
    "with c(x) as (select 1) select x from c": "a WITH clause that names columns or reuses a name",
    "select i from t union all select i, k from u": "a union of other widths",
    "select i from t tablesample (10 percent)": "SAMPLE of TABLE",
    "select x from t as v(x, y)": "names of columns beside a table",
    "select i from t asof join u on t.i = u.i": "METHOD of JOIN",
    "select 1e3 as n from t": "a number with an exponent",
    "select 1234567890123456789 as n from t": "a number of more than 18 digits",
    "select i from t where s": "a condition that is not a boolean",
    "select i from t where i": "a condition that is not a boolean",
    "select replace(s, k) as n from t join u on t.i = u.i": "REPLACE of other than a written text",
    "select substring(s, i) as n from t": "SUBSTRING from a position that is not a positive number",
    "select substring(s, 0) as n from t": "SUBSTRING from a position that is not a positive number",
    "select substring(s, 1, i) as n from t": "SUBSTRING of a length that may be negative",
    "select instr(s, k) as n from t join u on true": "the position of other than a written text",
    "select date_trunc('century', dt) as n from t": "DATE_TRUNC to CENTURY",
    "select date_format(dt, 'EEEE') as n from t": "this pattern of DATE_FORMAT",
    "select date_format(ts, 'yyyy') as n from t": "function TIMESTRTOTIME",
    "select date_format(dt, 'yyyy-MM') as n from t": "function TIMESTRTOTIME",
    "select date_add(ts, 1) as n from t": "DATE_ADD of other than days to a date",
    "select dt + interval 1 hour as n from t": "this interval beside a date",
    "select i from t group by m, i": "a value of type map<string,int>",
    "select distinct m from t": "a value of type map<string,int>",
    "select i as n from t union all select k from u": "a union of int and string",
    "select i from t natural join u": "METHOD of JOIN",
    "select trim('x' from s) as n from t": "EXPRESSION of TRIM",
    "select regexp_extract(s, 'a', i) as n from t": "function REGEXPEXTRACT",
    "select date_trunc('foo', dt) as n from t": "DATE_TRUNC to FOO",
    "select sum(i) over (partition by m) as n from t": "a value of type map<string,int>",
    "select upper(bin) as n from t": "a value of type binary",
    "select explode(arr) as n from t": "function EXPLODE",
    "select rand() as n from t": "function RAND",
    "select i from t order by i limit 3": "LIMIT of SELECT",
    "select i from t lateral view explode(m) v as k, x": "a value of type map<string,int>",
    "select count(*) as n from t group by rollup(1)": "GROUP BY other than columns",
    "select i from t, u right join t as x on true": "the column i is of several tables",
    "select length(bin) as n from t": "a value of type binary",
    "select i & l as n from t": "form BITWISEAND",
    "select concat(s, bin) as n from t": "a value of type binary",
    "select s || bin as n from t": "a value of type binary",
    "select coalesce(i, s) as n from t": "a value of type string",
    "select nullif(i, 'x') as n from t": "NULLIF of other types",
    "select if(b, i, s) as n from t": "a value of type string",
    "select avg(f) as n from t": "a value of type double",
    "select max(bin) as n from t": "a value of type binary",
    "select collect_list(i) as n from t": "ARRAY_AGG that is not sorted",
    "select sort_array(collect_list(distinct i)) as n from t": "ARRAY_AGG with DISTINCT, ORDER or LIMIT",
    "select sort_array(collect_set(f)) as n from t": "ARRAY_UNIQUE_AGG of double",
    "select sort_array(collect_list(struct(i, l))) as n from t": "the order of struct<i:int,l:bigint>",
    "select sort_array(array(arr)) as n from t": "the order of array<int>",
    "select max(arr) as n from t": "the order of array<int>",
    "select arr = arr as n from t": "the order of array<int>",
    "select arr[i] as n from t": "an element by other than a written number",
    "select arr[-1] as n from t": "an element before the first one",
    "select element_at(arr, 0) as n from t": "an element before the first one",
    "select array() as n from t": "an array of no type, or of several",
    "select transform(arr, (e, p) -> e + p) as n from t": "a lambda of other than 1 value",
    "select transform(array(null), e -> 1) as n from t": "array<null>, which is no array of a type",
    "select split(s, 'a+') as n from t": "SPLIT at other than a written text",
    "select split(s, ',', 2) as n from t": "LIMIT of REGEXPSPLIT",
    "select array_contains(array(f), f) as n from t": "equality of double in an array",
    "select array_join(arr, ',') as n from t": "ARRAY_JOIN of other than texts",
    "select array_join(array(s), ',', '-') as n from t": "NULL of ARRAYTOSTRING",
    "select concat_ws(',', s, s) as n from t": "CONCAT_WS of other than one array",
    "select percentile(i, 0.5) filter (where b) as n from t": "QUANTILE with FILTER or OVER",
    "select percentile(i, 0.5, l) as n from t": "FREQUENCY of QUANTILE",
    "select transform(arr, I -> i + 1) as n from t": "the name i, of a column or of an element",
    "select percentile(w, 0.5) as n from t": "QUANTILE of decimal(38,10)",
    "select months_between(ts, ts) as n from t": "MONTHS_BETWEEN of other than dates",
    "select months_between(dt, dt, false) as n from t": "ROUNDOFF of MONTHSBETWEEN",
    "select stddev(i) as n from t": "function STDDEV",
}  # fmt: skip
PROVEN = {
    "select i not in (select i from u) as n from t": "boolean",
    "select dt = '2024-01-01' as n from t": "boolean",
    "select struct(i, d as D, named_struct('select', ts)) as n from t": "struct<i:int,D:decimal(10,2),"
    "col3:struct<select:timestamp>>",
    "select st['P'] as n from t": "int",
    "select case when b then struct(year(dt) as p) else st end as n from t": "struct<p:int>",
    "select count(distinct st) as n from t": "bigint",
    "select lag(st) over (partition by st order by i, _sml_key) as n from t": "struct<p:int>",
    "select max_by(struct(i, f), _sml_key) as n from t": "struct<i:int,f:double>",
    "select count(distinct i, st) as n from t": "bigint",
    "select avg(i) over (order by l) as n from t": "double",
    "select avg(d) as n from t": "decimal(14,6)",
    "select case i when 1 then l end as n from t": "bigint",
    "select to_date(ts) as n from t": "date",
    "select trunc(ts, 'MM') as n from t": "date",
    "select d / 7L as n from t": "decimal(14,6)",
    "select d / -7S as n from t": "decimal(14,6)",
    "select d / cast(7 as bigint) as n from t": "decimal(31,23)",
    "select cast(ts as bigint) as n from t": "bigint",
    "select cast(i as tinyint) as n from t": "tinyint",
    "select floor(d) as n from t": "decimal(9,0)",
    "select e as n from t lateral view posexplode(sequence(dt, dt, interval 1 month)) v as p, e": "date",
    "select null as n from t union all select i from u": "int",
    "select d / w as n from t": "decimal(38,20)",
    "select sum(d) as n from t": "decimal(20,2)",
    "select f + d as n from t": "double",
    "select datediff(ts, dt) as n from t": "int",
    "select sum(i) over (partition by s order by f, l desc) as n from t": "bigint",
    "select sum(d) over (order by l, _sml_key rows 3 preceding) as n from t": "decimal(20,2)",
    "select avg(cast(d as decimal(14,2))) over (order by l rows between unbounded preceding and unbounded following)"
    " as n from t": "decimal(18,6)",
    "select count(*) over (order by l range between current row and unbounded following) as n from t": "bigint",
    "select i as n from t where exists (select max(i) from u)": "int",
    "select i as n from t where i in (select max(i) from u)": "int",
    "select i as n from t where exists (select k from u where u.k = t.s group by k having count(*) > 1)": "int",
    "select (select count(*) from u where k = s and exists (select 1 from t v where v.i = u.i)) as n from t": "bigint",
    "select max(f) over () as n from t": "double",
    "select max(f) over (order by dt range 6 preceding) as n from t": "double",
    "select sum(i) over (order by ts desc range between interval 90 minutes preceding and interval '2' days following)"
    " as n from t": "bigint",
    "select count(*) over (order by d range between 0.5 preceding and 1 following) as n from t": "bigint",
    "select lag(l, 2, 0) ignore nulls over (order by i desc, cast(_sml_key as string)) as n from t": "bigint",
    "select first_value(s) ignore nulls over (order by i, _sml_key rows 1 preceding) as n from t": "string",
    "select ntile(4) over (partition by s order by i, _sml_key) as n from t": "int",
    "select percent_rank() over (partition by s order by i) as n from t": "double",
    "select cume_dist() over (order by dt desc) as n from t": "double",
}


def columns_of(table: exp.Table) -> Schema:
    return TABLES[table.name]


@pytest.mark.parametrize("sql", UNPROVEN)
def test_what_duckdb_may_compute_otherwise_is_left_to_spark(sql: str) -> None:
    with pytest.raises(Unproven) as caught:
        exact(sqlglot.parse_one(sql, dialect=SPARK), columns_of)
    assert str(caught.value) == UNPROVEN[sql]


@pytest.mark.parametrize("sql", PROVEN)
def test_the_type_of_a_value_is_sparks(sql: str) -> None:
    (column,) = exact(sqlglot.parse_one(sql, dialect=SPARK), columns_of).columns
    assert (column.name, column.type) == ("n", PROVEN[sql])


def test_an_argument_is_rewritten_once() -> None:
    """Spark counts the days of a week from 1, DuckDB from 0; the proof of a window asks for its argument twice."""
    for text in ("sum(dayofweek(dt)) over (partition by s)", "avg(dayofweek(dt)) over ()", "avg(dayofweek(dt))"):
        made = exact(sqlglot.parse_one(f"select {text} as n from t", dialect=SPARK), columns_of).sql
        assert made.count("+ 1") == made.count("DAYOFWEEK(") > 0
