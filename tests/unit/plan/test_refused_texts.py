# ruff: noqa: E501
"""What Spark's parser and analysis refuse whatever the columns are is told at compile; what is like it is accepted."""

from __future__ import annotations

import pytest

from sqlmesh_like.errors import SqlError
from sqlmesh_like.plan.checks.check import check_models
from tests.properties.lake import T, U, model, schema

COLUMNS = schema(i="int", s="string", ts="timestamp")
REFUSED = {
    "select a.i, l.s from ods.t as a, lateral (select s from ods.t as b where b.i = a.i order by s limit 1) as l": "LIMIT in LATERAL of a query that reads the rows to its left",
    "select i from ods.t where i = any (select i from ods.t)": "ANY of a query is not Spark SQL",
    "select i from ods.t where i >= all (select i from ods.t)": "ALL of a query is not Spark SQL",
    "select date '2024-13-01' as x from ods.t": "'2024-13-01' is not a date",
    "select i from ods.t where date'mar 11 2016' < current_date": "'mar 11 2016' is not a date",
    "select timestamp '2024-02-30 10:00:00' as x from ods.t": "'2024-02-30 10:00:00' is not a timestamp",
    "select ts - interval '1 fortnight' as x from ods.t": "'1 fortnight' is not an interval",
    "select ts - interval 'one' day as x from ods.t": "'one' is not a number of day",
    "select ts + interval '1 2:03' hour to minute as x from ods.t": "'1 2:03' is not an interval from hour to minute",
    "select ts + interval 1 month 2 days as x from ods.t": "an interval has months or smaller units, not both",
    "select ts + interval '1 year 1 hour' as x from ods.t": "an interval has months or smaller units, not both",
    "select interval '1-2' year to month '3' day as x": "an interval from one unit to another stands alone",
    "select timestampadd('MONTH', 1, ts) as x from ods.t": "'MONTH' is a text: the unit of TIMESTAMPADD",
    "select datediff('day', ts, ts) as x from ods.t": "'day' is a text: the unit of DATEDIFF",
    "select 128Y as x from ods.t": "128Y is out of range",
    "select -9223372036854775809L as x from ods.t": "9223372036854775809L is out of range",
    "with a as (select i from ods.t), A as (select 1 as i) select i from a": "the name 'A' of WITH is ambiguous",
    "with a as (select i from ods.t), b as (with a as (select 1 as i) select i from a) select i from b": (
        "the name 'a' of WITH is ambiguous"
    ),
    "with a as (select i from b), b as (select i from ods.t) select i from a": "the table b is not a ref() or source()",
    "select x.i from (with a as (select i from ods.t) select i from a) x join a on x.i = a.i": (
        "the table a is not a ref() or source()"
    ),
    "select s like 'a%b' escape '%' as x from ods.t": "'%' escapes nothing in the pattern 'a%b'",
    "select i, count(*) as n from ods.t group by rollup(i, i + 1) having grouping(i) = 0": "GROUPING(i) in this HAVING",
    "select i, count(*) as n from ods.t group by rollup(i, s) having grouping_id(s, i) = 0": "GROUPING_ID(s, i) in this",
    "select i, s as i, 1 as n from ods.t group by cube(i, s) having grouping(i) = 0": "GROUPING(i) in this HAVING",
    "select s > '' as k, 1 as n from ods.t group by cube((s > ''), k) having grouping(k) = 0": "GROUPING(k) in this",
    "select i, 1 as n from ods.t group by cube(i, s) having grouping(i) = 0 and s > ''": "GROUPING(i) in this HAVING",
    "select i, grouping(i) as x from ods.t group by i": "GROUPING(i) is of grouping sets only",
    "select median(i) over (partition by s order by i) as x from ods.t": "MEDIAN(i) has no order of rows over a window",
    "select percentile_cont(0.5) within group (order by i) over w as x from ods.t window w as (order by s)": (
        "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i) has no order of rows over a window"
    ),
    "select ceil(2.5, 'a') as x from ods.t": "the scale of CEIL is a whole number, not 'a'",
    "select * from ods.t order by 0": "ORDER BY position 0 is not in the SELECT list",
    "select i from ods.t having i > 0": "HAVING without GROUP BY and without an aggregate",
    "select i from ods.t where i in (select i, s from ods.u)": "IN has 1 value(s), and its query 2 column(s)",
    "select explode(explode(array(array(i)))) as x from ods.t": "a generator cannot be nested in another one",
    "select * from ods.t lateral view explode(null) e as x": "EXPLODE(NULL) takes an array or a map",
    "select (select i, s from ods.u) as x from ods.t": "a subquery in the place of a value has 2 columns",
    "select * from values (1, 2), (3) as v(a, b)": "the rows of VALUES have different numbers of columns",
    "select i from ods.t where s like any ()": "the list of patterns is empty",
    "select i from ods.t limit i": "LIMIT and OFFSET are known before any row is read: i",
    "select ts - interval (i) days as x from ods.t": "the number of an interval is written without brackets",
    "select sum(i) over w as x from ods.t": "the window 'w' is not defined",
    "select sum(i) over w as x from ods.t window w as (order by s), W as (order by i)": "the window 'W' is defined twice",
    "select count(i) filter (where i > 1) over (partition by s) as x from ods.t": "FILTER is not possible over a window",
    "select count(distinct i) over (partition by s) as x from ods.t": "DISTINCT is not possible over a window",
    "select sum(i) over (partition by s range between 1 preceding and current row) as x from ods.t": (
        "a RANGE frame with an offset needs one column in ORDER BY, not 0"
    ),
    "select sum(i) over (order by s rows between 1 following and 1 preceding) as x from ods.t": (
        "the frame ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING ends before it begins"
    ),
    "select sum(i) over (order by s rows between unbounded following and 1 following) as x from ods.t": (
        "the frame ROWS BETWEEN UNBOUNDED FOLLOWING AND 1 FOLLOWING begins after all rows"
    ),
    "select from_json(s, 1) as x from ods.t": "a schema is a text such as 'a INT, b STRING', not 1",
    "select from_json(s, 'a INTT') as x from ods.t": "'INTT' in the schema 'a INTT' is not a type",
    "select from_csv(s, 'Array<int>') as x from ods.t": "a row of CSV is a struct, not Array<int>",
    "select from_json(s, 'a INT', map('mode', 1)) as x from ods.t": "options are texts, not 1",
    "select to_json(struct(i), named_struct('a', 'b')) as x from ods.t": "options are a map, not a struct",
    "select schema_of_json(s) as x from ods.t": "the schema is that of one example, not of a column or NULL",
    "select to_binary(s, 'hax') as x from ods.t": "to_binary() takes hex, utf-8 or base64 as its format, not 'hax'",
    "select mask(s, 'XX') as x from ods.t": "mask() replaces by one character that is written out, not 'XX'",
    "select mask(upperChar => 'X', s) as x from ods.t": "an argument without a name follows one with a name",
    "select mask(upperChar => 'X') as x from ods.t": "mask() lacks the text to mask",
    "select regexp_replace(s, 'a', 'b', 0) as x from ods.t": "regexp_replace() begins at a position from 1, not 0",
    "select sort_array(array(s), 'x') as x from ods.t": "sort_array() takes true or false, not 'x'",
    "select to_number(s, '99D9G9') as x from ods.t": "thousands are separated before the decimal point only",
    "select to_number(s, '999G') as x from ods.t": "a separator of thousands stands between digits",
    "select format_string('%0$s', s) as x from ods.t": "the arguments of format_string() are numbered from 1",
    "select x from ods.t lateral view json_tuple(s, 1) j as x": "json_tuple() takes texts, not 1",
    "select id from range(0, 5, 0)": "the step of range() is not 0",
    "select upper(x -> x) as x from ods.t": "upper() takes no lambda function",
    "select encode(str => s, charset => 'utf-8') as x from ods.t": "encode() does not take named arguments",
    "select string(i, 2) as x from ods.t": "string takes 1 argument, not 2",
    "select a from values (1, rand()) as v(a, b)": "VALUES holds constants, not RAND()",
    "select a from values (1), (2) as v(a, b)": "VALUES has 1 column(s), and its alias 2",
    "select a from values (array(1)), (struct(1)) as v(a)": "a column of VALUES holds values of different kinds",
    "select a from posexplode(array(1, 2)) as p(a)": "POSEXPLODE(ARRAY(1, 2)) has 2 column(s), and its alias 1",
    "select a from ods.t as v(a)": "the list names 1 columns of 3",
    "select i from ods.t as v(a, b, c)": "unknown column 'i'",
    "select * from rank() over (order by 1)": "RANK() OVER (ORDER BY 1) is not a table",
    "select one from (select s, i from ods.t) pivot (abs(i) for s in ('a' as one))": "PIVOT takes aggregates, not ABS(i)",
    "select i, s, count(*) as n from ods.t group by rollup(i, ())": "ROLLUP has an empty set already",
    "select * from ods.t group by 1": "GROUP BY position 1 beside a star",
    "select i from ods.t where ts >= date 'Yesterday '": "'Yesterday ' depends on the clock: write date_sub(current_date, 1)",
    "select timestamp 'now UTC' as x from ods.t": "'now UTC' depends on the clock: write current_timestamp",
    "select timestamp '10:11' as x from ods.t": "'10:11' has no date, and Spark takes the current one: write a date before it",
    "select ts + interval 1 fake as x from ods.t": "'fake' is not a unit of an interval",
    "select ts + interval 1 year to month as x from ods.t": "an interval from year to month is a text: '1'",
    "select ts + interval '1' year to second as x from ods.t": "there is no interval from year to second",
    "select ts + interval '1 25' day to hour as x from ods.t": "'1 25' is out of the range of an interval from day to hour",
    "select 1E309 as x from ods.t": "1E309 is out of range",
    "select 3.5E39f as x from ods.t": "3.5E39f is out of range",
    "select 1.20E-38BD as x from ods.t": "1.20E-38BD is out of range",
    "select sum(i) over (order by s range between 1 preceding and current row) as x from ods.t": (
        "a RANGE frame over string has no offset of int"
    ),
    "select sum(i) over (order by ts range between 1 preceding and current row) as x from ods.t": (
        "a RANGE frame over timestamp has no offset of int"
    ),
    "select sum(i) over (order by i range between current_date preceding and current row) as x from ods.t": (
        "a bound of a frame is a literal, not CURRENT_DATE"
    ),
}
ACCEPTED = (
    "select i from ods.t group by i having any((select max(s) = 'x' from ods.t))",
    "select count(*) as n from ods.t group by window(timestamp(s), '7 days')",
    "select date '2024-2-3' as a, date '-2024' as b, date' 2024-01-02T10 ' as c, date 'epoch' as d from ods.t",
    "select timestamp '2024-01-01 1:2:3.5+01:00' as a, timestamp 'epoch' as b from ods.t",
    "select timestamp '2024-01-01 10:00:00 Europe/Paris' as a, timestamp '2024' as b from ods.t",
    "select cast('no date' as date) as a, s as date from ods.t",
    "select ts - interval '1 day -2.5 seconds' as a, ts + interval -'1' month as b, interval 'INTERVAL 1 week' as c from ods.t",
    "select interval '1-2' year to month as a, interval '-1 2:03:04.5' day to second as b, interval 3 days 4 hours as c from ods.t",
    "select date_add('2024-01-01', 1) as a, datediff('2024-01-02', s) as b, timestampadd(month, 1, ts) as c from ods.t",
    "select 127Y as a, -128Y as b, -9223372036854775808L as c, 1 as s from ods.t",
    "with a as (select i from ods.t) select x.i from (with a as (select i from ods.t) select i from a) x join a on x.i = a.i",
    "with a as (select i from ods.t), b as (with c as (select i from a) select i from c) select i from b",
    "select s like 'a%%b%_' escape '%' as x from ods.t",
    "select i, grouping(i) as x from ods.t group by i with rollup",
    "select i, s, grouping_id(i, s) as x from ods.t group by grouping sets ((i), (s, i))",
    "select median(i) over (partition by s) as x from ods.t",
    "select sum(i) over (partition by s order by i) as x, ceil(2.5, 1) as y from ods.t",
    "select count(*) as n from ods.t having count(*) > 0",
    "select i from ods.t where (i, s) in (select i, s from ods.u) order by 1",
    "select i, (select max(s) from ods.u) as x from ods.t where i = (select max(i) from ods.u) limit 1 + 1",
    "select sum(i) over w as x, max(i) over (w) as y from ods.t window w as (order by s)",
    "select sum(i) over (order by i range between 1 preceding and 2 following) as x from ods.t",
    "select count(i) filter (where i > 1) as n from ods.t where s like any ('a', 'b')",
    "select x from ods.t lateral view explode(array(i)) e as x",
    "with c (x) as (select 1 union all select * from range(5)) select x, sum(x) over w as s from c window w as (order by x)",
    "select from_json(s, 'a INT, b DECIMAL(10,2)') as a, from_json(s, 'STRUCT<a: INT>', map('mode', 'FAILFAST')) as b from ods.t",
    "select to_binary(s) as a, to_binary(s, 'UTF-8') as b, schema_of_json('{}') as c, try_to_number(s, 'S999,999.99') as d from ods.t",
    "select mask(s, null, 'x') as a, mask(s, digitChar => 'd') as b, mask(str => s) as c, mask(s) as d from ods.t",
    "select regexp_replace(s, 'a', 'b', 2) as a, sort_array(array(s), false) as b, format_string('%1$s', s) as c from ods.t",
    "select transform(array(i), x -> x + 1) as a, array_sort(array(i), (x, y) -> x - y) as b, string(i) as c, date(ts) as d from ods.t",
    "select cast(i as string) as a, array(i)[0] as b, i as string from ods.t as string(i, s, ts)",
    "select a from values (array(1)), (null), (array(2)) as v(a)",
    "select a, b from ods.t as v(a, b, c) lateral view posexplode(array(a)) e as p, x",
    "select a, b from posexplode(map(1, 2)) as p(a, b, c)",
    "select interval '-178956970-8' year to month as a, interval -'178956970-8' year to month as b from ods.t",
    "select 3.4e38f as a, 1e308 as b, -1.7976931348623157E308D as c, 123.4BD as d, 1e2 as e from ods.t",
    "select sum(i) over (order by ts range between interval 1 day preceding and current row) as x from ods.t",
    "select sum(i) over (order by date(ts) range between 1 preceding and 1 following) as x, max(i) over (order by date(ts) range interval 1 month preceding) as y from ods.t",
    "select i, s, count(*) as n from ods.t group by grouping sets ((i, s), ())",
    "select one from (select s, i from ods.t) pivot (count(*) as n for i in (1 as one, 2 as two))",
)  # fmt: skip


def error_of(sql: str) -> SqlError | None:
    return check_models([model(sql)], {T: COLUMNS, U: COLUMNS}).errors.get(model(sql).unique_id)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_spark_refuses_is_told_with_its_place(sql: str) -> None:
    error = error_of(sql)
    assert error is not None and error.message.startswith(REFUSED[sql]), error
    assert error.location is not None and error.location.line == 1 and error.location.column


@pytest.mark.parametrize("sql", ACCEPTED)
def test_what_spark_answers_is_accepted(sql: str) -> None:
    assert error_of(sql) is None
