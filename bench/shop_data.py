"""A shop as a database that changes: orders, partitioned by month, users and products."""

from __future__ import annotations

from pathlib import Path

from bench.dms import Change, SourceDatabase

DEVICES, DAYS = 200, 730
PARTITION = {"column": "ordered_on", "format": "yyyyMM", "as": "ym"}
"""How the orders are partitioned in the lake."""
KEYS = {"orders": ("id",), "users": ("id",), "products": ("id",)}
NEWEST_DAYS = 45
MADE_AT = "timestamp '2024-01-01 00:00:00'"


def database(root: Path) -> SourceDatabase:
    return SourceDatabase("shop", root / "shop.duckdb", root / "landing", KEYS)


def queries(orders: int) -> dict[str, str]:
    """Return the tables as SELECTs: `orders` orders, the newest ids in the newest months, a user for each twenty."""
    users = max(50, orders // 20)
    return {
        "orders": orders_query(orders, users),
        "users": f"select range as id, 'city ' || range % 300 as city, 'user ' || range as name from range({users})",
        "products": "select range as id, 'kind ' || range % 40 as kind, 'product ' || range as name from range(1000)",
    }


def orders_query(orders: int, users: int) -> str:
    return (
        f"select range as id, cast(hash(range, 1) % {users} as bigint) as user_id,"
        f" cast(hash(range, 2) % {DEVICES} as int) as device_id, cast(hash(range, 3) % 1000 as bigint) as product_id,"
        " cast((hash(range, 4) % 100000) / 100 as decimal(12,2)) as amount,"
        " if(hash(range, 5) % 5 = 0, 'returned', 'paid') as status,"
        f" cast(date '2022-01-01' + cast(range * {DAYS} // {orders} as int) as date) as ordered_on,"
        f" cast({MADE_AT} as timestamptz) as updated_at from range({orders})"
    )


def statements(change: Change, number: int, *, moves: bool = True) -> list[str]:
    """Return the SQL of a batch: `share` of the orders, a third each inserted, updated and deleted.

    With `moves`, a tenth of the updated orders goes to another month. `updated_at` of a row identifies its batch.
    """
    where = ""
    if change.spread == "newest":
        where = f"where ordered_on > (select max(ordered_on) from orders) - {NEWEST_DAYS}"
    now = f"cast({MADE_AT} + interval {number} hour as timestamptz) as updated_at"
    moved = f"if(hash(id, {number}, 1) % 10 = 0, ordered_on - 31, ordered_on)" if moves else "ordered_on"
    return [
        "create or replace temp table picked as select id as k, row_number() over (order by id) as n from"
        f" (select id from orders {where} order by hash(id, {number})"
        f" limit (select cast(ceil(count(*) * {change.share}) as bigint) from orders))",
        "create or replace temp table top as select max(id) as k from orders",
        f"create or replace temp table d_orders as select 'I' as Op, * replace ((select k from top) + n as id, {now})"
        " from (select o.*, p.n from orders o join picked p on id = k where n % 3 = 0) c",
        "alter table d_orders drop n",
        "insert into d_orders select 'U', * replace (cast(amount * 2 + 1 as decimal(12,2)) as amount,"
        f" if(status = 'paid', 'returned', 'paid') as status, {moved} as ordered_on, {now})"
        " from orders where id in (select k from picked where n % 3 = 1)",
        "insert into d_orders select 'D', * from orders where id in (select k from picked where n % 3 = 2)",
    ]
