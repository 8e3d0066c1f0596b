"""Models with array columns are built, followed and verified without a JVM; other readers see the same values."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.faults.shop import ORDERS, Row, Shop
from tests.unit.app.nested_columns import Rows, require_followed, shop_of

ITEMS = (
    "array(struct(amount / cast(3 as double) as ratio, cast(day as timestamp) as at,"
    " cast(amount as decimal(10,1)) as half))"
)
MODELS = {
    "detail": "select id, day, array(customer, null, amount) as two, split(cast(day as string), '-') as parts,"
    f" case when amount > 20 then {ITEMS} when amount > 10 then filter({ITEMS}, e -> e.ratio < 0) end as items"
    " from {{ ref('orders') }}",
    "region": "select customer, collect_list(amount) as amounts,"
    " sort_array(collect_set(cast(day as string)), false) as days,"
    " transform(array_sort(collect_list(id)), i -> i * 2) as twice, count(*) as n"
    " from {{ ref('orders') }} group by customer",
    "daily": "{{ config(partition_by='day') }} select day, element, size(parts) as n,"
    " array_contains(parts, '01') as has from {{ ref('detail') }} lateral view explode(two) l as element",
    "customer": "select customer, max_by(amounts, n) as most from {{ ref('region') }} group by customer",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return shop_of(tmp_path_factory.mktemp("built"), MODELS)


def expected(shop: Shop) -> dict[str, Rows]:
    orders = shop.rows_at[ORDERS, shop._frontier(ORDERS)]
    by_customer: dict[int, list[Row]] = {}
    for row in sorted(orders, key=lambda row: str(row[0])):
        by_customer.setdefault(row[1], []).append(row)
    region = [
        {
            "customer": customer,
            "amounts": [row[2] for row in rows],
            "days": sorted({row[3] for row in rows}, reverse=True),
            "twice": sorted(row[0] * 2 for row in rows),
            "n": len(rows),
        }
        for customer, rows in by_customer.items()
    ]
    daily = [
        {"day": datetime.date.fromisoformat(row[3]), "element": element, "n": 3, "has": "01" in row[3].split("-")}
        for row in orders
        for element in (row[1], None, row[2])
    ]
    return {
        "detail": [_details(row) for row in orders],
        "region": region,
        "daily": daily,
        "customer": [{"customer": row["customer"], "most": row["amounts"]} for row in region],
    }


def _details(row: Row) -> dict[str, Any]:
    day = datetime.date.fromisoformat(row[3])
    at = datetime.datetime.combine(day, datetime.time(), datetime.UTC)
    item = {"ratio": row[2] / 3.0, "at": at, "half": Decimal(row[2])}
    items = [item] if row[2] > 20 else [] if row[2] > 10 else None
    return {"id": row[0], "day": day, "two": [row[1], None, row[2]], "parts": row[3].split("-"), "items": items}


def test_arrays_are_built_followed_and_verified_without_a_jvm(shop: Shop) -> None:
    require_followed(shop, expected, batches=3)
