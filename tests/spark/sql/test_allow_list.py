"""What DuckDB is trusted with: every listed function and form gives what Spark gives, over values of all kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal

import duckdb
import sqlglot
from pyspark.sql import SparkSession
from sqlglot import exp

from sqlmesh_like.dialects import SPARK
from sqlmesh_like.duckdb import allow_list
from sqlmesh_like.duckdb.allow_list import first_unproven
from sqlmesh_like.duckdb.dialect import DATE_PARTS, duck_text
from sqlmesh_like.duckdb.duck_types import cast_item, without_zone
from sqlmesh_like.duckdb.guards import add_guards

D = Decimal
COLUMNS = {
    "id": "int", "g": "string", "s": "string", "n": "string", "c": "decimal(5,2)", "i": "int", "b": "boolean",
    "d": "date", "m": "timestamp",
}  # fmt: skip
ROWS = [
    (1, "a", "Ab c", "12", D("1.50"), 7, True, date(2024, 1, 2), datetime(2024, 1, 2, 13, 5, 6)),
    (2, "a", " x ", "-3", D("-2.25"), -4, False, date(2023, 12, 31), datetime(2023, 12, 31, 23, 59, 59)),
    (3, "b", "", "0", D("0.00"), 0, True, date(2024, 2, 29), datetime(2024, 2, 29)),
    (4, None, None, None, None, None, None, None, None),
    (5, "b", "Ab c", "12", D("2.35"), 7, None, date(2024, 12, 31), datetime(2024, 10, 1, 0, 0, 1)),
]
OF_A_ROW = (
    "i > 0 and b", "b = true",
    "i > 0 or b", "not b", "i = 7", "i <> 7", "i >= 0", "i < 0", "i <= 0", "i <=> null", "i is null",
    "i is not null", "i in (7, null)", "i not in (7)", "c between 0 and 2", "s like 'A%c'", "s like '_ _'", "i + 1",
    "i - 8", "i * c", "c * c", "i / 2", "i / 0", "i % 3", "c % 1", "-c", "s || '-' || n", "if(b, i, 0)",
    "case when i > 0 then 'more' when i = 0 then 'none' end", "case i when 7 then s else n end", "cast(n as int)",
    "cast(n as bigint)", "cast(n as double)", "cast(n as decimal(7,3))", "cast(i as string)", "cast(c as string)",
    "cast(b as string)", "cast(d as string)", "cast(b as int)", "cast(if(b, 1, 0) as boolean)", "cast(d as timestamp)",
    "cast(m as date)", "try_cast(n as int)", "cast(i * 86399 as timestamp)", "to_timestamp(i)", "cast(m as timestamp)",
    "try_cast(i * 1000000 as timestamp)", "to_timestamp(cast(m as string))",
    "coalesce(s, n, 'none')", "nullif(i, 7)", "abs(c)", "abs(i)",
    "round(c, 1)", "round(c)", "floor(c)", "ceil(c)", "greatest(i, id, null)", "least(c, 0)", "upper(s)", "lower(s)",
    "trim(s)", "length(s)", "concat(s, '/', d)", "substring(s, 2, 2)", "substring(s, 3)", "replace(s, 'b', 'xx')",
    "year(d)", "month(d)", "day(d)", "dayofmonth(d)", "quarter(d)", "datediff(d, date '2024-01-01')", "date_add(d, 30)",
    "date_sub(d, 60)", "to_date(cast(d as string))", "date(cast(d as string))", "date_format(m, 'yyyy-MM-dd HH:mm:ss')",
    "last_day(d)", "date_trunc('MONTH', m)", "date_trunc('HOUR', m)", "date_trunc('YEAR', d)",
    "date_trunc('QUARTER', d)", "date_trunc('WEEK', m)", "date_trunc('week', d)",
    "current_date > d", "current_timestamp() > m", "now() > m", "isnull(s)", "isnotnull(s)", "md5(s)",
    "power(2, 10)", "s ilike 'a%'", "s not ilike '%B C'",
    "cast(cast(n as double) / 7 as decimal(7,3))", "cast(cast(c as double) / 2 as decimal(6,2))",
    "cast(cast(c as float) / 3 as decimal(28,6))", "cast(i / 8 as decimal(4,2))", "cast(n as decimal)",
    "cast(c as decimal)", "cast(cast(c as double) as decimal(3,1))", "timestamp_seconds(i * 86401)",
    "timestamp_seconds(unix_timestamp(cast(m as timestamp)) + 3600)", "unix_timestamp(cast(d as timestamp))",
    "unix_timestamp(cast('1969-12-31 23:59:58.750' as timestamp))", "add_months(d, 1)", "add_months(d, -i)",
    "add_months(cast(m as date), cast(i * 3 as int))", "dayofweek(d)", "dayofweek(m)", "dayofyear(d)",
    "from_utc_timestamp(m, 'America/Los_Angeles')", "from_utc_timestamp(cast(d as timestamp), 'Asia/Kolkata')",
    "to_utc_timestamp(cast('2024-05-06 07:08:09' as timestamp), 'America/Los_Angeles')",
    "to_utc_timestamp(cast(d as timestamp), 'Asia/Kolkata')", "right(s, length(s) - 2)", "right(s, i)", "right(s, -1)",
    *(f"date_format(m, '{pattern}')" for pattern in ("E", "EEE", "EEEE", "MMM", "MMMM", "EEEE, dd MMM yyyy")),
    *(f"regexp_extract(s, '{regex}', 0)" for regex in ("[A-Z]", "b|A", "^ ?x *$", "(?i)B c", "[^ ]+", "x{2}", "..?")),
    "regexp_extract(s, '([A-Z])(b)?', 2)", "regexp_extract(n, '^(-?)([0-9]+)$', 1)", "s rlike '[a-c] '", "n rlike '^1'",
    "split_part(s, ' ', 2)", "split_part(s, ' ', -1)", "split_part(s, 'zz', 1)", "split_part(n, '2', 3)",
    *(f"date_part('{part}', m)" for part in DATE_PARTS), "date_part('dayofweek_iso', d)", "date_part('WEEK', d)",
    "locate('b', s)", "locate('', s)", "position(n in s)", "date_trunc('MINUTE', m)", "date_trunc('SECOND', m)",
    "split_part(cast(c as string), '.', 2)", "cast(floor(cast(c as double)) as int)", "cast(ceil(i / 2) as bigint)",
    "cast(m as timestamp) - interval 2 hours", "exists (select 1 from t as u where u.i = t.id)",
)  # fmt: skip
AGGREGATES = (
    "count(*)", "count(i)", "count(distinct i)", "count_if(b)", "sum(i)", "sum(c)", "avg(i)", "avg(c)", "min(s)",
    "max(d)", "min(c)", "bool_and(b)", "bool_or(b)", "sum(i) filter (where c > 0)",
    "sum(case when b then 1 else 0 end)", "any_value(g)", "any_value(concat(g, '-'))",
    "first(g)", "last(g)", "first_value(concat(g, '-'))", "last_value(g)",
    "max_by(s, d)", "min_by(s, m)", "max_by(c, id)", "min_by(i, concat(s, cast(id as string)))",
    "array_join(array_sort(collect_list(cast(s as string))), ',')",
    "array_join(slice(array_sort(collect_set(cast(i as string))), 1, 1), '')",
    "array_join(transform(sort_array(collect_list(d), false), x -> cast(x as string)), ', ')",
    "array_join(transform(sort_array(collect_set(c), true), x -> cast(x as string)), '|')",
    *(
        f"array_join(transform(sort_array(collect_list(case when ({value}) is not null then struct(({key}) is {test}"
        f" as f, ({key}) as k, ({value}) as v) end), {way}), x -> cast(x.v as string)), '|')"
        for key, value in (("b", "s"), ("m", "n"), ("n", "d"))
        for test in ("null", "not null")
        for way in ("true", "false")
    ),
)  # fmt: skip
WINDOWED = (
    "row_number() over (partition by g order by id)", "rank() over (order by i)", "dense_rank() over (order by i desc)",
    "lag(s) over (partition by g order by id)", "lead(i, 2, -1) over (order by id)", "sum(c) over (partition by g)",
    "sum(i) over (order by id rows between 1 preceding and current row)", "count(*) over (order by g)",
    "ntile(2) over (order by id)", "percent_rank() over (order by i)",
    "cume_dist() over (partition by g order by n desc)",
)  # fmt: skip
FORMS = (
    "select /*+ broadcast(t) */ id from t",
    "select g, grouping(g) as x, grouping_id(g, b) as y, count(*) as n from t group by cube (g, b)",
    "select g, sum(i) as x from t group by rollup (g)",
    "select g, b, max(c) as x from t group by grouping sets ((g), (b), ())",
    "select g, b, count(*) as n from t group by g, b with rollup",
    "select g, b, sum(i) as n from t group by g, b with cube",
    "select g, b, count(*) as n from t group by rollup ((g, b), i)",
    "select g, b, count(*) as n from t group by g, rollup (b)",
    "select g, count(*) as n from t group by grouping sets ((g), (g))",
    "select g, b, grouping_id() as y, count(*) as n from t group by rollup (g, b)",
    "select g, count(distinct i) as n, max(s) as m from t where id < 0 group by rollup (g)",
    "select coalesce(g, 'all') as g, sum(c) filter (where b) as n from t group by grouping sets ((g), ())",
    "select g, b, avg(i) as n from t group by grouping sets ((g, b), (b), ()), g",
    "select upper(g) as u, count(*) as n from t group by rollup (upper(g))",
    "select case when grouping(g) = 1 then 'total' else g end as x, count(*) as n from t group by g with rollup",
    "select g, b, count(*) as n from t group by rollup (g), cube (b)",
    "select g, sum(i) as n, rank() over (order by sum(i) desc) as r from t group by rollup (g)",
    "select x.g, x.n from (select g, count(*) as n from t group by rollup (g)) as x where x.g is null",
    "select g, b, count(*) as n from t group by grouping sets (rollup (g, b), cube (b))",
    "select count(*) as n from t where id < 0 group by grouping sets (())",
    "select g, first(b) as n from t where b group by rollup (g)",
    "select g, count(*) as x from t group by g having count(*) > 1",
    "select id, i from t order by i, id limit 3",
    "select id, i from t order by i desc, id limit 2 offset 1",
    "select distinct s from t",
    "select i from t union select id from t",
    "select i from t union all select id from t",
    "select i from t intersect select id + 2 from t",
    "select i from t except select 0",
    "with w as (select g, i from t) select w.g, u.id from w join t as u on w.i = u.id",
    "select t.id, u.id as other from t left join t as u on t.i = u.id",
    "select t.id, u.id as other from t full join t as u on t.i = u.id",
    "select t.id, u.id as other from t cross join t as u where t.id < u.id",
    "select id from t left semi join (select i as k from t) as u on t.id = u.k",
    "select id from t left semi join (select i as k from t where id < 0) as u",
    "select id from t left anti join (select i as k from t where id < 0) as u",
    "select id from t left anti join (select i as k from t) as u on t.id = u.k",
    "select id from t where id in (select i from t)",
    "select id, (select max(i) from t) as x from t",
    "select id from t qualify row_number() over (partition by g order by id) = 1",
    "select x.k, x.v from (values (1, 'a'), (2, null)) as x(k, v)",
    "select id, explode(array(i, id)) as x from t",
    "select id, explode_outer(array(s, n)) as x from t",
    "select id, explode(sequence(1, id, 2)) as x from t",
    "select id, explode(concat(array(i), array(id, id))) as x from t",
    "select id, explode_outer(concat(cast(array() as array<int>), if(i > 0, array(i), null))) as x from t",
    "select id, posexplode(array(i, id)) as (p, x) from t",
    "select t.id, e.x from t lateral view explode(array(i, 0)) e as x",
    "select window(m, '1 hour').start as s, window(m, '1 hour').end as e, count(*) as n from t"
    " group by window(m, '1 hour')",
    "select g, window(d, '1 week', '3 days', '-1 day').start as s from t",
)  # fmt: skip


def queries() -> Iterator[str]:
    yield "select id, " + ", ".join(f"{item} as r{n}" for n, item in enumerate(OF_A_ROW)) + " from t"
    yield "select g, " + ", ".join(f"{item} as r{n}" for n, item in enumerate(AGGREGATES)) + " from t group by g"
    yield "select id, " + ", ".join(f"{item} as r{n}" for n, item in enumerate(WINDOWED)) + " from t"
    yield from FORMS


def test_both_engines_give_the_same(spark: SparkSession) -> None:
    session = spark.newSession()
    ddl = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    session.createDataFrame(ROWS, ddl).createOrReplaceTempView("t")
    with duckdb.connect(":memory:") as db:
        db.execute("SET TimeZone = 'UTC'; SET ieee_floating_point_ops = false")
        db.execute(f"CREATE TABLE t ({ddl.replace('string', 'varchar')})")
        db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(COLUMNS))})", ROWS)
        for query in queries():
            expected = session.sql(sqlglot.parse_one(query, dialect=SPARK).sql(SPARK))  # which knows no QUALIFY
            items = ", ".join(cast_item(name, type_) for name, type_ in expected.dtypes)
            tree = sqlglot.parse_one(query, dialect=SPARK)
            values = db.execute(
                f"SELECT {items} FROM ({duck_text(add_guards(tree).transform(without_zone))})"
            ).fetchall()
            rows = [tuple(row) for row in expected.collect()]
            unlike = [(name, *pair) for row in zip(sorted(values, key=repr), sorted(rows, key=repr), strict=True)
                      for name, *pair in zip(expected.columns, *row, strict=True) if pair[0] != pair[1]]  # fmt: skip
            assert Counter(values) == Counter(rows), (query, unlike)


def test_every_listed_function_and_form_is_tried() -> None:
    trees = [sqlglot.parse_one(query, dialect=SPARK) for query in queries()]
    doubted = {tree.sql(SPARK): why for tree in trees if (why := first_unproven(tree))}
    assert not doubted
    tried = {type(node) for tree in trees for node in tree.walk()}
    named = {node.name.upper() for tree in trees for node in tree.find_all(exp.Anonymous)}
    assert not sorted(each.__name__ for each in {*allow_list.FUNCTIONS, *allow_list._FORMS} - tried)
    assert any(issubclass(each, exp.ExplodeOuter) for each in tried)
    assert not allow_list._NAMED - named
