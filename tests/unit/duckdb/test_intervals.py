"""Months and days added in one query: DuckDB takes an interval of 30 days and one of a month for the same."""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import sqlglot

from sqlmesh_like.duckdb.dialect import duck_text
from sqlmesh_like.duckdb.duck_types import without_zone
from sqlmesh_like.duckdb.exact_sql import exact
from sqlmesh_like.names import Column

ROW = "(select date '2024-01-02' as d, timestamp '2024-01-02 03:00:00' as m) as t"
MOVED = {
    "d + interval 1 month": date(2024, 2, 2), "d + interval 30 days": date(2024, 2, 1),
    "d - interval 1 year": date(2023, 1, 2), "d - interval 360 days": date(2023, 1, 7),
    "m + interval 1 month": datetime(2024, 2, 2, 3), "m + interval 720 hours": datetime(2024, 2, 1, 3),
    "m + interval 30 days": datetime(2024, 2, 1, 3), "m - interval 90 minutes": datetime(2024, 1, 2, 1, 30),
}  # fmt: skip


def test_exact_queries_tell_a_month_from_thirty_days() -> None:
    query = sqlglot.parse_one(f"select {', '.join(f'{item} as x{n}' for n, item in enumerate(MOVED))} from t", "spark")
    made = exact(query, lambda _: (Column("d", "date"), Column("m", "timestamp")))
    with duckdb.connect() as db:
        assert db.execute(made.sql.replace(" FROM t", f" FROM {ROW}")).fetchone() == tuple(MOVED.values())


def test_so_do_checks_on_duckdb() -> None:
    query = "select add_months(d, 1) as a, date_add(d, 30) as b, cast(m as timestamp) + interval 720 hours as c"
    tree = sqlglot.parse_one(f"{query}, add_months(d, -12) as e, date_sub(d, 360) as f from {ROW}", "spark")
    with duckdb.connect() as db:
        assert db.execute(duck_text(tree.transform(without_zone))).fetchone() == (
            date(2024, 2, 2), date(2024, 2, 1), datetime(2024, 2, 1, 3), date(2023, 1, 2), date(2023, 1, 7),
        )  # fmt: skip
