"""Many forms of queries: how each is maintained, and where not, which rule says so and at which column of its text."""

from __future__ import annotations

import pytest

from sqlmesh_like.errors import SqlError
from tests.properties.lake import compiled, schema

COLUMNS = schema(
    a="int", b="bigint", s="string", f="double", d="date", x="decimal(10,2)", arr="array<int>", m="map<string,int>",
    st="struct<p:int,q:string>", js="string",
)  # fmt: skip
REBUILT = {
    "select * from ods.t join ods.u on t.a = u.a pivot (sum(x) for s in ('a'))": ("QRY009", 21, "a JOIN with PIVOTS"),
    "select * from (ods.t join ods.u on t.a = u.a) as j": ("QRY009", 16, "a nested join with two columns of one name"),
    "select t.a from ods.t tablesample (10 percent)": ("QRY009", 17, "a table modifier or a nested join in FROM"),
    "select t.a from ods.t join (ods.u join ods.t as w using (a)) using (a)":
        ("QRY009", 23, "USING in a nested join beside another one"),
    "select * from (select a, s, x from ods.t) pivot (sum(x) for s in ('a')) pivot (sum(a) for b in (1))":
        ("QRY009", 73, "several PIVOT"),
    "select q from ods.t as v(q, q, r, s, f, d, x, arr, m, st)": ("QRY009", 15, "a column list with one name twice"),
    "select t.a from ods.t asof join ods.u on t.a = u.a": ("QRY009", 23, "a ASOF JOIN"),
    "select a from ods.t union by name select a from ods.u": ("QRY009", 21, "UNION BY NAME"),
    "select a from ods.t union all by name select a from ods.u": ("QRY009", 21, "UNION BY NAME"),
    "select a from ods.t intersect by name select a from ods.u": ("QRY004", 21, "INTERSECT BY NAME"),
    "select s, listagg(a) within group (order by a) as l from ods.t group by s":
        ("FUN001", 19, "a ORDER BY a is not known to be a pure function of its row"),
    "select a, b from ods.t order by zz limit 3": ("QRY003", 33, "ORDER BY zz"),
    "select a, b from ods.t order by rand() limit 3": ("FUN002", 33, "RAND() is not deterministic"),
    "select a, count(*) as n from ods.t group by a having count(*) > (select max(b) from ods.t)"
    " qualify row_number() over (order by n) = 1": ("QRY006", 92, "QUALIFY beside HAVING of a query"),
    "select * replace (a + 1 as a) from ods.t": ("QRY009", 8, "a star with modifiers"),
    "select d, count(*) as n from ods.t group by rollup(year(d), d)":
        ("QRY010", 61, "two keys of GROUPING SETS, ROLLUP or CUBE over d"),
    "select trunc(d, 'MM') as n from ods.t group by rollup(trunc(d, 'YEAR'), trunc(d, 'MM'))":
        ("QRY010", 73, "two keys of GROUPING SETS, ROLLUP or CUBE over d"),
    "select map('x', a) as n from ods.t":
        ("FUN001", 8, "MAP('x', `a`) is not known to be a pure function of its row"),
    "select v.x from values (1), (array(1)) as v(x) join ods.t on t.a = v.x":
        ("TYP001", 17, "a column of VALUES has values of different types"),
    "select v.x from values (1), ('a') as v(x) join ods.t on t.s = v.x":
        ("TYP001", 17, "a column of VALUES has values of different types"),
    "select * from values ('a'), (1) as v(x)": ("TYP001", 15, "a column of VALUES has values of different types"),
    "select id from range(a)": ("QRY008", 16, "RANGE of other than integers as they are written"),
    "select a, e, e2 from ods.t lateral view explode(m) v as e, e":
        ("TYP002", 41, "EXPLODE(m) of the type map<string,int>"),
    "select a, stack(2, a, b) as x from ods.t": ("TYP001", 11, "a column of STACK(2, a, b) has no one proven type"),
    "select p, q from ods.t lateral view stack(2, a, 'x', b, 'y') w as p, q":
        ("TYP001", 37, "a column of STACK(2, a, 'x', b, 'y') has no one proven type"),
    "select * from (select a, s, x from ods.t) pivot (sum(x) for s in ('p')) as z":
        ("QRY009", 43, "PIVOT with an alias or GROUP BY"),
    "select * from (select a, b, s from ods.t) unpivot (a for s in (a, b))":
        ("TYP001", 43, "UNPIVOT of columns without one proven type"),
    "select * from (select a, b from ods.t) unpivot (v for n in (a + 1, b))": ("QRY009", 61, "a + 1 in UNPIVOT"),
    "select * from (select a, s from ods.t) unpivot (v for n in (a, s))":
        ("TYP001", 40, "UNPIVOT of columns without one proven type"),
    "select * from (select a, b from ods.t) unpivot (v for n in (a, b))":
        ("TYP001", 40, "UNPIVOT of columns without one proven type"),
    "select t.st.zz as p from ods.t": ("QRY009", 8, "the nested field t.st.zz"),
    "select a, sum(b) over (w order by b) as t from ods.t window w as (partition by s)":
        ("QRY006", 11, "a window that extends a named one"),
    "select t.a, l.c from ods.t, lateral (select t.b + 1, t.a) l(c)":
        ("QRY009", 29, "LATERAL of a query: the list names 1 columns of 2"),
    "select t.a, l.c from ods.t, lateral (select t.b + 1, t.a) l":
        ("QRY009", 29, "LATERAL of columns without a name, or with one name"),
    "select t.a, l.c from ods.t, lateral (select explode(t.arr) as c) l":
        ("QRY009", 29, "LATERAL of a query with groups, windows or further clauses"),
    "select t.a, l.c from ods.t, lateral (select u.b as c from ods.u where u.a = t.zz) l":
        ("QRY009", 29, "LATERAL of a query: unknown column 'zz'"),
    "select t.a, l.c from ods.t, lateral (select u.b as c, row_number() over (order by u.b) as r from ods.u where"
    " u.a > t.a) l": ("QRY009", 110, "LATERAL of windows over rows chosen by other than equalities"),
    "select t.a, l.c from ods.t, lateral (select u.b as c, row_number() over (order by u.b) as r from ods.u where"
    " u.a = t.s) l": ("QRY009", 110, "LATERAL of windows by an equality of other than one exact type"),
    "select t.a, l.c from ods.t, lateral (select u.b as c, rank() over (order by t.b) as r from ods.u where u.a = t.a)"
    " l": ("QRY009", 29, "LATERAL of a query: unknown table or alias 't' in t.b"),
    "select t.a, l.c from ods.t, lateral (select u.b as c, rank() over (order by u.b) as r from ods.u where u.a = t.a"
    " group by u.b) l": ("QRY009", 29, "LATERAL of a query with groups, windows or further clauses"),
    "select t.a, l.c from ods.t left join lateral (select sum(u.b) as c from ods.u where u.a = t.a) l on l.c > 1":
        ("QRY009", 38, "LATERAL of a query with groups, windows or further clauses"),
    "select t.a from ods.t where (select max(u.a) from ods.u) in (select w.a from ods.u as w)":
        ("QRY005", 37, "a subquery in IN of a query"),
    "select t.a, coalesce(t.a in (select u.a from ods.u), true) as f from ods.t":
        ("QRY005", 22, "IN of a query as a value that Spark may compute again where it is read"),
    "select q.f from (select t.a in (select u.a from ods.u) as f from ods.t) as q":
        ("QRY005", 25, "IN of a query as a value that Spark may compute again where it is read"),
    "select t.a, (select u.b from ods.u where u.a = t.a) as m from ods.t":
        ("QRY012", 14, "a correlated subquery that is not an aggregate"),
    "select t.a, (select count(*) from ods.u where u.a = t.a and u.b > (select avg(w.b) from ods.u w)) as m from"
    " ods.t": ("QRY005", 68, "a subquery in a correlated subquery"),
    "select t.a, 1 + (select sum(u.b) from ods.u where u.f = t.f) as m from ods.t":
        ("QRY012", 18, "a correlation by f of type double"),
    "select t.a from ods.t where exists (select 1 from ods.u where u.a = t.a and exists (select 1 from ods.t w"
    " where w.b = u.b and w.s = t.s))": ("QRY005", 29, "EXISTS of a query that is correlated below its FROM"),
    "select a, sum(b) as n, rank() over (order by a) + (select max(u.b) from ods.u) as r from ods.t group by a":
        ("QRY006", 24, "a window function beside a subquery of groups"),
    "select t.a, (select max(u.b + t.b) from ods.u where u.a = t.a) as m from ods.t":
        ("QRY012", 14, "a correlated subquery with a name that is not found in it or around"),
    "select t.a, (select max(u.b) from ods.u where u.a = t.a group by u.s) as m from ods.t":
        ("QRY012", 14, "a correlated subquery with GROUP BY of other than what equals the rows around it"),
    "select t.a, (select u.a from ods.u limit 1) as m from ods.t":
        ("QRY003", 36, "LIMIT without ORDER BY: which rows are first is not determined"),
    "select t.a from ods.t join ods.u using (a) join (ods.u as w join ods.t as z using (a)) using (a)":
        ("QRY009", 44, "USING in a nested join beside another one"),
    "select a from (select a, b from ods.t limit 1) order by b":
        ("QRY003", 39, "LIMIT without ORDER BY: which rows are first is not determined"),
    "select t.* from ods.t join ods.u using (a) join ods.t as w using (b)":
        ("QRY009", 49, "the column 'a' of USING and another one of that name"),
    "select a, sum(b) as w, max(w) as v from ods.t group by a": ("QRY009", 28, "the lateral alias 'w'"),
    "select t.a, (select max(u.b) from ods.u where u.s = t.s and u.f = t.f) as m from ods.t":
        ("QRY012", 14, "a correlation by f of type double"),
    "select t.a, (select max(u.b) from ods.u where u.a = t.a group by t.s) as m from ods.t":
        ("QRY012", 14, "a correlated subquery with GROUP BY of other than what equals the rows around it"),
    "select t.a from ods.t where t.a in (select u.a from ods.u where u.b in (select w.b from ods.t as w where w.s"
    " = t.s))": ("QRY005", 29, "IN of a query that is correlated below its FROM"),
    "select t.a from ods.t where exists (select max(u.a) from ods.u where u.b = t.b)":
        ("QRY005", 29, "EXISTS of an aggregate of rows that are chosen by the row around it"),
    "select a, null as z from ods.t union all (select a, null from ods.u union all select a, null from ods.u)":
        ("TYP001", 50, "UNION ALL column 'value_1' has no one proven type in all branches"),
}  # fmt: skip
FOLLOWED = {
    "select t.a from ods.t join ods.u on t.a = u.a and exists (select 1 from ods.t as w where w.b = u.b)":
        "group_recompute",
    "select t.a from ods.t join ods.u on t.a = u.a and exists (select 1 from ods.t as w where w.b = t.b + u.b)":
        "group_recompute",
    "select t.a from ods.t join ods.u on exists (select 1 from ods.t as w where w.b = u.b and w.a = t.a)":
        "group_recompute",
    "select t.a from ods.t left anti join ods.u on t.a = u.a": "group_recompute",
    "select t.a from ods.t full outer join ods.u on t.a > u.a": "group_recompute",
    "select t.a from ods.t left semi join ods.u using (a)": "group_recompute",
    "select a from ods.t except select a from ods.u": "group_recompute",
    "select a from ods.t except all select a from ods.u": "group_recompute",
    "select a from ods.t intersect all select a from ods.u": "group_recompute",
    "select s, percentile_cont(0.5) within group (order by a) as l from ods.t group by s": "group_recompute",
    "select a from ods.t order by b limit 3": "group_recompute",
    "select a, count(*) as n from ods.t group by a order by sum(b) limit 3": "group_recompute",
    "select a, sum(count(*)) over () as c from ods.t group by a": "group_recompute",
    "select a, sum(b) over w as t from ods.t window w as (partition by s)": "group_recompute",
    "select t.a, l.c from ods.t left join lateral (select u.b as c from ods.u where u.a = t.a) l on l.c > t.b":
        "group_recompute",
    "select t.a, l.c from ods.t, lateral (select count(*) as c from ods.u where u.a = t.a) l": "group_recompute",
    "select t.a, l.c from ods.t, lateral (select max(u.b) from ods.u where u.a = t.a) as l(c)": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where u.a = t.a) as m from ods.t": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where u.a < t.a) as m from ods.t": "group_recompute",
    "select t.a from ods.t where t.b > (select avg(u.b) from ods.u where u.a = t.a)": "group_recompute",
    "select t.a from ods.t where exists (select 1 from ods.u where u.a = t.a group by u.b having count(*) > 1)":
        "group_recompute",
    "select t.a from ods.t where exists (select 1 from ods.u where u.a = t.a limit 1)": "group_recompute",
    "select t.a from ods.t where exists (select 1 from ods.u join ods.t as w on w.a = u.a where u.b = t.b)":
        "group_recompute",
    "select t.a from ods.t where not exists (select 1 from ods.u where u.a > t.a)": "group_recompute",
    "select t.a from ods.t where t.a not in (select u.a from ods.u)": "group_recompute",
    "select t.a from ods.t where t.a not in (select u.a from ods.u where u.b = t.b)": "group_recompute",
    "select t.a from ods.t where t.a in (select max(u.a) from ods.u where u.s = t.s group by u.b)": "group_recompute",
    "select t.a from ods.t where exists (select 1 from ods.u where u.d > current_date()) or t.a = 1": "group_recompute",
    "select t.a, exists (select 1 from ods.u where u.d > current_date()) as e from ods.t": "group_recompute",
    "select a, sum(b) as n from ods.t group by a having sum(b) > (select avg(u.b) from ods.u)": "group_recompute",
    "select a, sum(b) as n from ods.t group by a having sum(b) > (select avg(u.b) from ods.u where u.a = t.a)":
        "group_recompute",
    "select a, sum(b) as n from ods.t group by a having exists (select 1 from ods.u where u.a = t.a)":
        "group_recompute",
    "select a, sum(b) + (select max(u.b) from ods.u) as n from ods.t group by a": "group_recompute",
    "select t.a, first(t.s) as fs from ods.t group by t.a": "aggregate_merge",
    "select t.a, first(t.s) filter (where t.b > 1) as fs from ods.t group by t.a": "aggregate_merge",
    "select (select count(*) from ods.u) as n": "group_recompute",
    "select t.a, (select sum(u.b) from ods.u where u.a = t.a or u.b = 1) as m from ods.t": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where u.a = t.a and t.b > 3) as m from ods.t": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where abs(u.a) = t.a) as m from ods.t": "group_recompute",
    "select t.a, (select count(distinct u.b) from ods.u where u.a = t.a) as m from ods.t": "group_recompute",
    "select t.a from ods.t where (t.a, t.b) in (select u.a, u.b from ods.u)": "group_recompute",
    "select t.a from ods.t where t.a in (select u.a from ods.u) or t.b in (select u.b from ods.u)": "group_recompute",
    "select t.a from ods.t where not (t.a in (select u.a from ods.u) and t.b > 1)": "group_recompute",
    "select t.a from ods.t cross join ods.u": "row_based",
    "select a + 1 as y, y + 1 as z from ods.t": "row_based",
    "select t.a, v.e from ods.t lateral view explode(arr) v as e": "row_based",
    "select a, inline(array(struct(1 as p, 2 as q))) from ods.t": "row_based",
    "select a, posexplode(arr) as (i, e) from ods.t": "row_based",
    "select t.a from ods.t join ods.u on t.a = u.a and t.b > u.b and t.s = 'x'": "row_based",
    "select st.p from ods.t": "row_based",
    "select t.st.p as p from ods.t": "row_based",
    "select a from ods.t union all select null from ods.u": "row_based",
    "select s from ods.t union all select a from ods.u": "row_based",
    "select t.a, l.c from ods.t left join lateral (select t.b + 1 as c) l on true": "row_based",
    "select t.a, l.c from ods.t join lateral (select t.b + 1 as c) l on l.c > 1": "row_based",
    "select t.a, l.c from ods.t, lateral (select t.b + 1 as c) l": "row_based",
    "select t.a, l.c from ods.t, lateral (select t.b + 1) l(c)": "row_based",
    "select t.a, l.c from ods.t, lateral (select *, 1 as c from ods.u where u.a = t.a) l": "row_based",
    "select t.a, l.c from ods.t, lateral (select u.b as c from ods.u union all select 1 as c) l": "row_based",
    "select t.a, c from ods.t, lateral (select t.b as c)": "row_based",
    "select t.a, (select 1) as one from ods.t": "row_based",
    "select a, s, count(*) as n from ods.t group by all": "aggregate_merge",
    "select a, count(*) as n from ods.t group by a with rollup": "aggregate_merge",
    "select year(d) as y, month(d) as m, count(*) as n from ods.t group by cube(year(d), month(d), trunc(d, 'MM'))":
        "aggregate_merge",
    "select map('x', a)[s] as n from ods.t": "row_based",
    "select id from range(3)": "row_based",
    "select count(*) as n from values (1), (2) as v(a)": "aggregate_merge",
    "select * from (select a, s, x from ods.t) pivot (sum(x) for (s, a) in (('p', 1)))": "aggregate_merge",
    "select (select max(u.b) from ods.u) as k, count(*) as n from ods.t group by (select max(u.b) from ods.u)":
        "aggregate_merge",
    "select case when a in (select u.a from ods.u) then 1 else 0 end as f, count(*) as n from ods.t group by case"
    " when a in (select u.a from ods.u) then 1 else 0 end": "aggregate_merge",
    "select v.x from values (1), (2L), (null) as v(x) join ods.t on t.a = v.x": "row_based",
    "select j.k from (ods.t as t join (select a as c, b as e from ods.u) as u on t.a = u.c) as j(a, k, s, f, d, x,"
    " arr, m, st, js, c, e)": "row_based",
    "select a as x, x + 1 as y, y * 2 as z from ods.t": "row_based",
    "select a + b as x, x * 2 as y from ods.t": "row_based",
    "select t.a from ods.t join ods.u on t.a = u.a and t.b = (select max(w.b) from ods.t as w where w.a = u.a and"
    " w.s = t.s)": "group_recompute",
    "select t.a from ods.t join ods.u on t.a = u.a and u.b = (select max(w.b) from ods.t as w where w.a = u.a)":
        "group_recompute",
    "select t.a from ods.t join ods.u on t.a = u.a and exists (select 1 from ods.t w where w.a = t.a and w.b = u.b)":
        "group_recompute",
    "select a, b from ods.t order by 1 + 1 limit 3": "group_recompute",
    "select a, (select b from ods.u order by s limit 1) as m from ods.t": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where u.a + t.a = 3) as m from ods.t": "group_recompute",
    "select t.a, (select max(u.b) from ods.u where u.a = t.a group by u.a) as m from ods.t": "group_recompute",
    "select t.a, (select sum(u.b) from ods.u where u.a = t.a and u.s = 'x' group by u.a) as m from ods.t":
        "group_recompute",
    "select t.a, (select max(u.b) from ods.u group by u.s having u.s = 'x') as m from ods.t": "group_recompute",
    "select t.a from ods.t where not exists (select u.a, count(*) from ods.u where u.b = t.b group by u.a)":
        "group_recompute",
    "select t.a from ods.t where t.a not in (select max(u.a) from ods.u group by u.s)": "group_recompute",
    "select t.a from ods.t where t.a in (select u.a from ods.u union all select w.b from ods.t as w)":
        "group_recompute",
    "select a, first(s) ignore nulls as f from ods.t group by a": "aggregate_merge",
    "select a, last(s) as l, any_value(s) as v from ods.t group by a": "aggregate_merge",
    "select a, sum(b) as n from ods.t group by a having sum(b) in (select u.b from ods.u)": "group_recompute",
    "select a, sum(b) as n from ods.t group by a having not exists (select 1 from ods.u where u.a = sum(t.b))":
        "group_recompute",
    "select * from (select a, s, x, f from ods.t) pivot (sum(f) for s in ('p'))": "group_recompute",
    "select a, sum(x) over (partition by s order by b rows between unbounded preceding and current row) as r from"
    " ods.t": "group_recompute",
    "select a, lag(b) over (partition by s order by b) as r from ods.t": "group_recompute",
    "select max(a) as m from (select a from ods.t order by b limit 1)": "aggregate_merge",
    "select a, sum(b) filter (where s in (select u.s from ods.u)) as n from ods.t group by a": "aggregate_merge",
    "select a, sum((select max(u.b) from ods.u)) as n from ods.t group by a": "aggregate_merge",
    "select a, sum(b) as n from ods.t group by grouping sets ((a), ())": "aggregate_merge",
    "select coalesce(t.a, u.a) as k, count(*) as n from ods.t full join ods.u on t.a = u.a group by coalesce(t.a,"
    " u.a)": "aggregate_merge",
}  # fmt: skip
REFUSED = {
    "select j.q from (ods.t as t join ods.u as u on t.a = u.a) as j(q, r)": "1:18: the list names 2 columns of 20",
    "select a, b from ods.t order by 7 limit 3": "1:33: ORDER BY position 7 is not in the SELECT list",
    "select distinct on (a) a, b from ods.t": "1:21: DISTINCT ON is not Spark SQL",
    "select * except (zz) from ods.t": "1:18: unknown column 'zz' in EXCEPT of a star",
    "select a from ods.t qualify a > 1": "1:29: QUALIFY needs a window function",
    "select a, count(*) as n from ods.t group by a qualify n > 1": "1:55: QUALIFY needs a window function",
    "select a as y, y * 2 as z from ods.t where y > 1": "1:44: unknown column 'y'",
    "select * from values (1, 2), (3) as v(a, b)": "1:23: the rows of VALUES have different numbers of columns",
    "select id from range(1, 5, 0)": "1:16: the step of range() is not 0",
    "select t.a, v.e from ods.t lateral view explode(arr) v as a": "1:13: unknown column 'e' of 'v'",
    "select a, count(*) as n from ods.t group by rollup((a, b), rollup(s))":
        "1:66: invalid SQL: `)` is missing before `(`",
    "select a, max(a) as m from ods.t where sum(b) > 1 group by a":
        "1:40: an aggregate is not allowed in WHERE: SUM(b)",
    "select a, sum(b) over nope as t from ods.t window w as (partition by s)": "1:11: the window 'nope' is not defined",
    "select t.a, l.c from ods.t, lateral (select u.b as c from ods.u where u.a = t.a order by u.b limit 1) l":
        "1:45: LIMIT in LATERAL of a query that reads the rows to its left",
    "select t.a from ods.t where t.a in (select u.a, u.b from ods.u)":
        "1:29: IN has 1 value(s), and its query 2 column(s)",
    "select t.a from ods.t where t.a in (select u.a, u.b from ods.u where u.s = t.s)":
        "1:29: IN has 1 value(s), and its query 2 column(s)",
    "select t.a, (select u.b, u.a from ods.u) as m from ods.t":
        "1:26: a subquery in the place of a value has 2 columns",
    "select t.a from ods.t where t.a = any (select u.a from ods.u)": "1:47: ANY of a query is not Spark SQL",
    "select t.a from ods.t where t.a > all (select u.a from ods.u)": "1:47: ALL of a query is not Spark SQL",
    "select v.x from values (1, 2), (3) as v(x, y) join ods.t on t.a = v.x":
        "1:25: the rows of VALUES have different numbers of columns",
    "select t.a, r.id from ods.t join range(1, 5, 0) as r on r.id = t.a": "1:34: the step of range() is not 0",
    "select a, count(*) as n from ods.t group by a having a in (select u.a from ods.u where u.s = t.s)":
        "1:94: column 't.s' is neither in GROUP BY nor in an aggregate",
    "select a from ods.t lateral view explode(arr) a as a": "1:8: the column 'a' is ambiguous",
    "select a, e, b from ods.t lateral view posexplode(arr) v as e, e":
        "1:40: two columns of POSEXPLODE(arr) have one name",
    "select * from (select a, x, s from ods.t) unpivot (x for n in (a))": "1:52: UNPIVOT gives two columns one name",
}  # fmt: skip


@pytest.mark.parametrize("sql", REBUILT)
def test_a_full_refresh_says_why_and_where(sql: str) -> None:
    classification = compiled(sql, COLUMNS).classification
    reason = classification.reasons[0]
    assert classification.strategy == "full_refresh"
    assert (reason.rule, reason.column, reason.message) == REBUILT[sql]


@pytest.mark.parametrize("sql", FOLLOWED)
def test_a_form_is_maintained_by_the_strategy_that_its_operators_allow(sql: str) -> None:
    assert compiled(sql, COLUMNS).classification.strategy == FOLLOWED[sql]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_spark_refuses_is_refused_at_its_place(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        compiled(sql, COLUMNS)
    assert str(caught.value).splitlines()[0] == f"models/m.sql:{REFUSED[sql]}"
