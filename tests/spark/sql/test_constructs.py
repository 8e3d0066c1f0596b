"""Grouping sets, exploded arrays, scalar subqueries and counted set operations on real tables, followed together."""

from __future__ import annotations

from tests.levels import count
from tests.spark.lake import Lake

MODELS = {
    "by_sets": (
        "aggregate_merge",
        "select city, buyer, grouping(buyer) as g, sum(id) as total, min(buyer) as low, count(*) as n from @orders"
        " group by city, buyer with cube",
    ),
    "with_totals": (
        "group_recompute",
        "select city, count(distinct buyer) as n from @orders group by rollup(city) having count(*) > 1",
    ),
    "words": ("row_based", "select id, p, w from @orders lateral view outer posexplode(split(words, ',')) v as p, w"),
    "items": (
        "aggregate_merge",
        "select v.name, sum(v.n) as n from @orders lateral view inline(items) v group by v.name",
    ),
    "first_items": ("row_based", "select id, item.name as name from (select id, explode(items) as item from @orders)"),
    "with_counts": (
        "group_recompute",
        "select p.id, (select count(*) from @orders o where o.buyer = p.id) as n,"
        " (select max(o.id) from @orders o where o.buyer = p.id and o.city = p.name) as last from @people p",
    ),
    "by_doubled": (
        "group_recompute",
        "select id, buyer * 2 as b, count(*) over (partition by b order by b, id) as n from @orders",
    ),
    "not_in": ("group_recompute", "select id, name from @people where id not in (select buyer from @orders)"),
    "not_in_known": (
        "group_recompute",
        "select id, name from @people where id not in (select buyer from @orders where buyer is not null)",
    ),
    "tested": (
        "group_recompute",
        "select id, case when id in (select buyer from @orders) then 1 when not (id in (select buyer from @orders)"
        " or name is null) then 2 end as bought, exists (select 1 from @orders o where o.city = p.name) as here"
        " from @people p where name is null or id in (select id from @orders)",
    ),
    "above_one": (
        "group_recompute",
        "select buyer, count(*) as n from @orders group by buyer having count(*) >= (select min(id) from @people)",
    ),
    "valued": (
        "group_recompute",
        "select id, (select name from @people where id = 1) as one from @orders where buyer is not null",
    ),
    "of_types": (
        "group_recompute",
        "select id, cast(1.5 as decimal(5,2)) as d, null as t from @orders"
        " union select name, 3, date '2024-01-31' from @people",
    ),
    "by_city": (
        "aggregate_merge",
        "select * from (select buyer, city, id from @orders)"
        " pivot (count(*) as n, sum(id) as total for city in ('x' as x, 'y'))",
    ),
    "of_both": (
        "row_based",
        "select * from (select city, id, buyer from @orders) unpivot (n for which in (id, Buyer))",
    ),
    "by_hour": (
        "aggregate_merge",
        "select window(timestamp_seconds(id * 1500), '1 hour', '30 minutes') as w, count(*) as n, max(city) as last"
        " from (@orders) group by w",
    ),
    "known_buyers": (
        "group_recompute",
        "select id, buyer in (select id from @people) as known, buyer not in (select id from @people) as other,"
        " row_number() over (partition by city order by id) as nr, nr + 1 as next from @orders",
    ),
    "not_buyers": ("group_recompute", "select id from @people except all select buyer from @orders"),
}

CHOSEN = dict(list(MODELS.items())[:: count(2, 1, 1)])
"""Of a suite, which shows all of them on DuckDB (`tests/unit/delta`)."""


def test_models_of_every_construct_equal_their_queries(lake: Lake) -> None:
    columns = "id int, buyer int, city string, words string, items array<struct<name:string,n:int>>, ym string"
    orders, people = lake.source("orders", columns, partition="ym"), lake.source("people", "id int, name string")
    for name, (_, sql) in CHOSEN.items():
        lake.model(name, sql)
    orders.upsert(
        (1, 1, "x", "a,b", [("k", 2), None], "m1"), (2, 2, "x", "", [], "m1"), (3, None, None, None, None, "m2"),
        (4, 1, "y", "c", [("k", 1), ("l", None)], "m2"),
    )  # fmt: skip
    people.upsert((1, "x"), (2, "y"), (3, None))
    assert set(lake.run_well().values()) == {"full_refresh"}
    lake.assert_maintained()
    orders.upsert(
        (1, 2, "y", "b,a,c", [("l", 5)], "m1"), (5, 3, None, ",", [("k", 7)], "m2"),
        delete=[(4, 1, "y", "c", [("k", 1), ("l", None)], "m2")],
    )  # fmt: skip
    people.upsert((4, "y"), delete=[(2, "y")])
    assert lake.run_well() == {name: strategy for name, (strategy, _) in CHOSEN.items()}
    lake.assert_maintained()
