"""TPC-H as a database that changes: rows of `tpchgen-cli`, and batches of changes to orders, lines and customers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bench.dms import Change, SourceDatabase
from bench.result import Unavailable
from tests.tpc.tables import TABLES

MONTHS = {"orders": "o_orderdate", "lineitem": "l_shipdate"}
"""Tables that are partitioned by the month of a date."""
LATE = 0.05
"""Share of a `newest` change that affects orders of any age."""
NEWEST_DAYS = 45
"""A `newest` change affects orders of so many days, or of the newest twice as many as change if these are more."""


def database(root: Path) -> SourceDatabase:
    keys = {name: table.primary_key for name, table in TABLES["h"].items()}
    return SourceDatabase("tpch", root / "tpch.duckdb", root / "landing", keys)


def load(tpch: SourceDatabase, scale: float) -> None:
    """Create the tables at a scale factor, and their load files."""
    generator, raw = Path(sys.executable).with_name("tpchgen-cli"), tpch.file.with_name("raw")
    if not generator.exists():
        raise Unavailable("tpchgen-cli is not installed: pip install 'sqlmesh_like[bench]'")
    subprocess.run([generator, "parquet", "-s", str(scale), "-o", raw], check=True, capture_output=True)
    tpch.load({table: f"select * from '{raw}/{table}.parquet'" for table in tpch.primary_keys})
    shutil.rmtree(raw)


def statements(change: Change, number: int) -> list[str]:
    """Return the SQL of a batch: `share` of the orders with their lines, a third each inserted, updated and deleted.

    A tenth of the updated rows moves to another month; a tenth of the share of the customers changes as well. No date
    becomes later than the latest one: `newest` must mean the same in each batch.
    """
    late = LATE if change.spread == "newest" else 1.0
    count = f"(select ceil(count(*) * {change.share}) from orders)"
    window = f"(select count(*) from orders where o_orderdate > (select max(o_orderdate) from orders) - {NEWEST_DAYS})"
    newest = (
        "(select o_orderkey from orders order by o_orderdate desc, o_orderkey"
        f" limit (select cast(greatest({window}, 2 * {count}) as bigint)))"
    )
    by_chance = f"order by hash(o_orderkey, {number}) limit"
    return [
        "create or replace temp table picked as select o_orderkey as k, row_number() over () as n from ("
        f"(select o_orderkey from {newest} {by_chance} (select cast({count} * {1 - late} as bigint)))"
        f" union (select o_orderkey from orders {by_chance} (select cast(ceil({count} * {late}) as bigint))))",
        "create or replace temp table top as select max(o_orderkey) as k from orders",
        # The new orders are copies of the picked ones under new keys.
        *_changed("orders", "o_orderkey", number, "o_totalprice + 1 as o_totalprice,"
            " if(o_orderstatus = 'F', 'O', 'F') as o_orderstatus, {moved} as o_orderdate", "o_orderdate"),
        *_changed("lineitem", "l_orderkey", number, "l_quantity + 1 as l_quantity,"
            " l_extendedprice + 100 as l_extendedprice, {moved} as l_shipdate", "l_shipdate"),
        "create or replace temp table d_customer as select 'U' as Op, * replace ("
        " cast(c_acctbal + 1 as decimal(15, 2)) as c_acctbal,"  # the same type: the batch must not change the schema
        " if(c_mktsegment = 'BUILDING', 'MACHINERY', 'BUILDING') as c_mktsegment) from customer"
        f" order by hash(c_custkey, {number})"
        f" limit (select cast(ceil(count(*) * {change.share} / 10) as bigint) from customer)",
    ]  # fmt: skip


def _changed(table: str, key: str, number: int, updates: str, date: str) -> list[str]:
    moved = f"if(hash({key}, {number}, 1) % 10 = 0, {date} - 31, {date})"
    return [
        f"create or replace temp table d_{table} as select 'I' as Op, * replace ((select k from top) + n as {key})"
        f" from (select t.*, p.n from {table} t join picked p on {key} = k where n % 3 = 0) c",
        f"alter table d_{table} drop n",
        f"insert into d_{table} select 'U', * replace ({updates.format(moved=moved)})"
        f" from {table} where {key} in (select k from picked where n % 3 = 1)",
        f"insert into d_{table} select 'D', * from {table} where {key} in (select k from picked where n % 3 = 2)",
    ]
