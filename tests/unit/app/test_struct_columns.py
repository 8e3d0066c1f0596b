"""Models with struct columns are built and followed without a JVM; other readers of Hudi tables see the same values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.faults.shop import ORDERS, Row, Shop
from tests.unit.app.nested_columns import Rows, require_followed, shop_of

MODELS = {
    "detail": "select id, struct(customer, amount as Total, named_struct('select', cast(day as date), 'at',"
    " cast(day as timestamp), 'half', cast(amount / 2 as decimal(10,1)), 'ratio', amount / cast(3 as double)) as more)"
    " as s, case when amount > 20 then struct(id as id, cast(null as decimal(22,4)) as none) end as maybe"
    " from {{ ref('orders') }}",
    "region": "select customer, max_by(struct(id as id, day), id) as last, count(maybe) as n from (select s.customer,"
    " id, cast(s.more.`select` as string) as day, maybe from {{ ref('detail') }}) group by customer",
    "daily": "{{ config(partition_by='day') }} select day, lead(s, 1) over (partition by day order by id) as next, id"
    " from (select id, cast(s.more.`select` as string) as day, s from {{ ref('detail') }} where s.Total > 10)",
    "customer": "select id, maybe from {{ ref('detail') }} where maybe is not null",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return shop_of(tmp_path_factory.mktemp("built"), MODELS)


def expected(shop: Shop) -> dict[str, Rows]:
    orders = sorted(shop.rows_at[ORDERS, shop._frontier(ORDERS)])
    detail = [{"id": row[0], "s": _details(row), "maybe": _maybe(row)} for row in orders]
    by_customer: dict[int, list[Row]] = {}
    by_day: dict[str, list[Row]] = {}
    for row in orders:
        by_customer.setdefault(row[1], []).append(row)
        if row[2] > 10:
            by_day.setdefault(row[3], []).append(row)
    region = [
        {"customer": key, "last": {"id": rows[-1][0], "day": rows[-1][3]}, "n": sum(row[2] > 20 for row in rows)}
        for key, rows in sorted(by_customer.items())
    ]
    daily = [
        {"day": day, "next": _details(after) if after else None, "id": row[0]}
        for day, rows in by_day.items()
        for row, after in zip(rows, [*rows[1:], None], strict=True)
    ]
    customer = [{"id": row[0], "maybe": _maybe(row)} for row in orders if row[2] > 20]
    return {"detail": detail, "region": region, "daily": daily, "customer": customer}


def _details(row: Row) -> dict[str, Any]:
    day = datetime.date.fromisoformat(row[3])
    at = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
    half = (Decimal(row[2]) / 2).quantize(Decimal("0.1"))
    more = {"select": day, "at": at, "half": half, "ratio": row[2] / 3.0}
    return {"customer": row[1], "Total": row[2], "more": more}


def _maybe(row: Row) -> dict[str, Any] | None:
    return {"id": row[0], "none": None} if row[2] > 20 else None


def test_structs_are_built_and_followed_without_a_jvm(shop: Shop) -> None:
    require_followed(shop, expected, batches=4)
