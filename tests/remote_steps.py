"""Models that read tables in each of the ways that executors answer for a driver, and rows that they are run over."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal as D

FACTS = {
    "id": "int", "grp": "int", "x": "double", "city": "string",
    "amount": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "day": {"type": "int", "logicalType": "date"},
    "seen": {"type": "long", "logicalType": "timestamp-micros"},
}  # fmt: skip
FACT, DIM = "{{ source('shop', 'facts') }}", "{{ source('shop', 'dims') }}"
BY_KEYS = {
    "of_decimals": f"select amount, count(distinct city) as n from {FACT} group by amount",
    "of_moments": f"select seen, count(distinct grp) as n, max(x) as x from {FACT} group by seen",
    "of_texts": f"select upper(city) as city, count(distinct grp) as n from {FACT} group by 1",
}
"""Groups that are looked up by keys of each type, or by an expression: the keys are sent along if it has to be."""
OTHERS = {
    "of_years": f"select year(day) as y, max(amount) as top, min(seen) as first, count(*) as n from {FACT} group by 1",
    "of_all": f"select max(amount) as top, min(day) as first, max(seen) as last, count(*) as n from {FACT}",
    "most": f"select id, amount from {FACT} order by amount desc limit 3",
    "best": f"with r as (select grp, sum(amount) as total from {FACT} group by grp) select d.name, r.total"
    f" from r join {DIM} as d on d.id = r.grp where r.total = (select max(total) from r)",
    "below": f"select f.id, d.name, f.x from {FACT} as f join {DIM} as d on f.grp < d.id",
    "lacking": f"select d.id from {DIM} as d where not exists (select 1 from {FACT} as f where f.grp = d.id + 1)",
    "ranked": f"select id, row_number() over (order by day, id) as n from {FACT}",
}
"""A predicate over an expression, aggregates of all rows, a table that runs out of rows, joins without equalities."""
SHARING = {
    f"joined_{name}": f"select f.id, f.x, d.name from {FACT} as f join {DIM} as d on f.grp = d.id where f.{condition}"
    for name, condition in (("dear", "amount > 5"), ("cheap", "amount <= 5"), ("late", "day > date '2000-01-01'"))
}
"""They need rows of other keys of the same change."""
MODELS = BY_KEYS | OTHERS | SHARING
SIGNS = (
    f"select f.id, cast(f.x as string) as x, d.name from {DIM} as d join {FACT} as f on f.grp = d.id"
    " join {{ source('shop', 'marks') }} as m on m.id > f.id"
)
"""Rows that are looked up meet a further table, by a query that shows the sign of their zeros."""


def fact(number: int, dice: random.Random) -> tuple[object, ...]:
    """A row of facts: its key, then its columns. NULL, NaN, negative zero and repeated values are among them."""
    return (
        str(number), number, dice.choice((None, 1, 2, 3, 4)),
        dice.choice((None, float("nan"), -0.0, 0.0, 1e300, float("-inf"), 0.1)), dice.choice((None, "", "ü", "a", "A")),
        dice.choice((None, D("-99999.99"), D("0.00"), D("0.10"), D("7.00"), D("9999999999.99"))),
        dice.choice((None, date(1969, 12, 31), date(1900, 1, 1), date(2024, 2, 29), date(2024, 3, 1))),
        dice.choice((None, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(2024, 2, 29, tzinfo=UTC))),
    )  # fmt: skip
