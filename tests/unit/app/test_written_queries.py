"""Texts that Spark 3.5 does not know, and queries that read no table, are built and followed without a JVM."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pytest

from sqlmesh_like import Project
from tests.faults.shop import ORDERS
from tests.unit.app.nested_columns import _read, shop_of

MODELS = {
    "days": "select day, year(day) as y from (select explode(sequence(date'2024-01-01', date'2024-01-03')) as day)",
    "labels": "select * from values (1, 'one'), (2, null) as v(id, label)",
    "until": "select explode(sequence(date'2024-01-30', current_date)) as day",
    "first": "select id, customer from {{ ref('orders') }}"
    " qualify row_number() over (partition by customer order by id) = 1",
    "totals": "select * except (amount), sum(amount) over (order by id rows unbounded preceding) as running"
    " from {{ ref('orders') }}",
}


def test_no_jvm_is_asked_how_it_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, dice = shop_of(tmp_path, MODELS), random.Random(5)
    monkeypatch.chdir(shop.root)
    strategies: list[dict[str, str | None]] = []
    for now in ("2024-01-31 12:00:00", "2024-01-31 18:00:00", "2024-02-01 12:00:00"):
        with Project.load(Path()) as project:
            results = project.run(now=datetime.datetime.fromisoformat(now)).results
            assert {result.status for result in results} <= {"success", "no-op"}, [each.message for each in results]
        strategies.append({each.node.name: each.strategy for each in results})  # type: ignore[union-attr]
        orders = sorted(shop.rows_at[ORDERS, shop._frontier(ORDERS)])
        firsts = {row[1]: row[0] for row in reversed(orders)}
        assert {row["customer"]: row["id"] for row in _read(shop, "first")} == firsts
        assert max(row["running"] for row in _read(shop, "totals")) == sum(row[2] for row in orders)
        shop.change(dice)
    assert [row["day"].day for row in _read(shop, "days")] == [1, 2, 3]
    assert [row["label"] for row in _read(shop, "labels")] == ["one", None]
    assert len(_read(shop, "until")) == 3
    for name, expected in (("days", "no_op"), ("labels", "no_op"), ("until", "no_op"), ("first", "group_recompute")):
        assert strategies[1][name] == expected, name
    assert strategies[2]["until"] == "full_refresh"
