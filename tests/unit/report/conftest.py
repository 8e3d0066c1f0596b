"""A lake made without Spark with tables of every shape that a chart may have, and the report of it."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.cli.app import main
from tests.local_lake import make_table

HOSTILE = "</script><script>document.title='hacked'</script><img src=x onerror=alert(1)>"
FIRST = date(2024, 1, 1)
MODELS = {
    "sales_by_day": "select day, total from {{ source('shop', 'orders') }}",
    "revenue_by_month": "select month, product, revenue from {{ source('shop', 'orders') }}",
    "sales_by_city": "select city, amount from {{ source('shop', 'orders') }}",
    "sales_total": "select amount, orders from {{ source('shop', 'orders') }}",
    "orders_by_quarter": "select quarter, channel, orders from {{ source('shop', 'orders') }}",
    "last_buyers": "select buyer, city from {{ source('shop', 'orders') }}",
    "nothing_yet": "select city, amount from {{ source('shop', 'orders') }}",
}


def tables() -> dict[str, pa.Table]:
    days = [FIRST + timedelta(n) for n in range(90)]
    totals = [Decimal(f"{1000 + 9 * n + 260 * math.sin(n / 5) + 80 * math.sin(n * 2.1):.2f}") for n in range(90)]
    months = [f"2024{n:02d}" for n in range(1, 13)]
    products = ("Tea", "Coffee", "Cocoa")
    pairs = [(month, product) for month in months for product in products]
    takings = [9200, 7100, 5200, 4100, 3900, 2100, 1500, 900, -400]
    quarters = ["2024-01"] * 3 + ["2024-04"] * 3
    cities = ["Springfield", "Lake Worth", "New York", "Miami", "Ülm <b>", HOSTILE, "Boise", "Reno", "Köln"]
    return {
        "sales_by_day": pa.table({"day": days, "total": pa.array(totals, pa.decimal128(12, 2))}),
        "revenue_by_month": pa.table({
            "month": [month for month, _ in pairs], "product": [product for _, product in pairs],
            "revenue": [2000.0 + 320 * n + 900 * math.cos(n * 1.3) for n in range(len(pairs))],
        }),
        "sales_by_city": pa.table({"city": cities, "amount": takings}),
        "sales_total": pa.table({"amount": pa.array([Decimal("1234567.50")], pa.decimal128(12, 2)), "orders": [48213]}),
        "orders_by_quarter": pa.table({
            "quarter": quarters, "channel": ["Web", "Shop", "Phone"] * 2, "orders": [40, 90, 12, 70, 85, 9],
        }),
        "last_buyers": pa.table({"buyer": ["Ann", "Bob", None], "city": ["Reno", "Reno", HOSTILE]}),
        "nothing_yet": pa.table({"city": pa.array([], pa.string()), "amount": pa.array([], pa.int64())}),
    }  # fmt: skip


def make_project(root: Path) -> Path:
    (root / "models").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.sqlmesh_like]\nname = "corner_shop"\n')
    (root / "profiles.yml").write_text("lake: {target: a, outputs: {a: {type: spark, schema: dws, warehouse: w}}}")
    described = "{name: sales_by_day, description: What the shop took each day.}"
    sources = "sources: [{name: shop, schema: ods, tables: [{name: orders}]}]\n"
    (root / "models/s.yml").write_text(f"{sources}models: [{described}]\n")
    for name, sql in MODELS.items():
        (root / f"models/{name}.sql").write_text(sql)
    for name, rows in tables().items():
        make_table(root / "w/dws" / name, rows)
    return root


def report(root: Path, *words: str, code: int = 0) -> Path:
    assert main(["report", *words, "--project-dir", str(root), "--profiles-dir", str(root)]) == code
    return root / "target/report.html"


@pytest.fixture(scope="session")
def report_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report with nothing declared."""
    return report(make_project(tmp_path_factory.mktemp("report")))
