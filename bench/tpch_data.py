"""TPC-H as a database that changes: a first load and batches of changes, as files of AWS DMS. Owns the data alone.

`tpchgen-cli` makes the rows; DuckDB keeps the tables as they are after each batch. Nothing is random but by a seed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb

Spread = Literal["newest", "scattered"]

PRIMARY_KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
MONTHS = {"orders": "o_orderdate", "lineitem": "l_shipdate"}
"""Tables that are partitioned by the month of a date."""
LATE = 0.05
"""Share of a `newest` change that falls on orders of any age."""
NEWEST_DAYS = 45
"""A `newest` change falls on the orders of so many days."""


@dataclass(frozen=True)
class Change:
    """One batch: `share` of the orders, a third each inserted, updated and deleted, with their lines.

    A tenth of the updated rows moves to another month; a tenth of the share of the customers changes as well.
    """

    share: float
    spread: Spread

    @property
    def name(self) -> str:
        """
        >>> Change(0.001, "newest").name
        '0.1% newest'
        """
        return f"{self.share * 100:g}% {self.spread}"


@dataclass(frozen=True)
class Database:
    """The tables at one scale. `folder` holds them, `landing` gets the files of DMS."""

    folder: Path
    landing: Path

    def load(self, scale: float) -> None:
        """Make the tables and their load files."""
        raw = self.folder / "raw"
        generator = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([generator, "parquet", "-s", str(scale), "-o", raw], check=True, stdout=subprocess.DEVNULL)
        with self._connected() as db:
            for table in PRIMARY_KEYS:
                db.execute(f"create table {table} as select * from '{raw}/{table}.parquet'")
                self._write(db, f"select * from {table}", table, "LOAD00000001")
        shutil.rmtree(raw)

    def change(self, change: Change, number: int) -> dict[str, int]:
        """Change the tables, and tell so in files named by `number`; the rows of each table that changed."""
        with self._connected() as db:
            db.execute("begin")
            for statement in _statements(change, number):
                db.execute(statement)
            counts = {}
            for table in ("orders", "lineitem", "customer"):
                self._write(db, f"select * from d_{table}", table, f"{number:08d}")
                counts[table] = _one(db, f"select count(*) from d_{table}")
                _apply(db, table)
            db.execute("commit")
        return counts

    def rows(self, table: str) -> int:
        with self._connected() as db:
            return _one(db, f"select count(*) from {table}")

    def _write(self, db: duckdb.DuckDBPyConnection, query: str, table: str, name: str) -> None:
        folder = self.landing / "tpch" / table
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f".{name}"
        db.execute(f"copy ({query}) to '{unfinished}' (format parquet, compression zstd)")
        os.replace(unfinished, folder / f"{name}.parquet")

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with duckdb.connect(str(self.folder / "tpch.duckdb")) as db:
            yield db


def _one(db: duckdb.DuckDBPyConnection, query: str) -> int:
    found = db.execute(query).fetchone()
    assert found is not None
    return int(found[0])


def _statements(change: Change, number: int) -> list[str]:
    """SQL that makes `d_orders`, `d_lineitem` and `d_customer`: the changed rows with `Op` (I, U, D) in front."""
    is_newest = change.spread == "newest"
    late = LATE if is_newest else 1.0
    recent = f"o_orderdate > (select max(o_orderdate) from orders) - {NEWEST_DAYS}"
    count = f"(select ceil(count(*) * {change.share}) from orders)"
    by_chance = f"order by hash(o_orderkey, {number}) limit"
    picked = f"(select o_orderkey from orders where {recent} {by_chance} cast({count} * {1 - late} as bigint))"
    return [
        "create or replace temp table picked as select o_orderkey as k, row_number() over () as n from ("
        f"{picked} union (select o_orderkey from orders {by_chance} cast(ceil({count} * {late}) as bigint)))",
        "create or replace temp table top as select max(o_orderkey) as k from orders",
        # The new orders are copies of the picked ones under new keys.
        "create or replace temp table d_orders as"
        " select 'I' as Op, * replace ((select k from top) + n as o_orderkey)"
        " from (select o.*, p.n from orders o join picked p on o_orderkey = k where n % 3 = 0) c",
        "alter table d_orders drop n",
        "insert into d_orders select 'U', * replace (o_totalprice + 1 as o_totalprice,"
        " if(o_orderstatus = 'F', 'O', 'F') as o_orderstatus,"
        f" if(hash(o_orderkey, {number}, 1) % 10 = 0, o_orderdate + 31, o_orderdate) as o_orderdate)"
        " from orders where o_orderkey in (select k from picked where n % 3 = 1)",
        "insert into d_orders select 'D', * from orders where o_orderkey in (select k from picked where n % 3 = 2)",
        "create or replace temp table d_lineitem as"
        " select 'I' as Op, * replace ((select k from top) + n as l_orderkey)"
        " from (select l.*, p.n from lineitem l join picked p on l_orderkey = k where n % 3 = 0) c",
        "alter table d_lineitem drop n",
        "insert into d_lineitem select 'U', * replace (l_quantity + 1 as l_quantity,"
        " l_extendedprice + 100 as l_extendedprice,"
        f" if(hash(l_orderkey, l_linenumber, {number}) % 10 = 0, l_shipdate + 31, l_shipdate) as l_shipdate)"
        " from lineitem where l_orderkey in (select k from picked where n % 3 = 1)",
        "insert into d_lineitem select 'D', * from lineitem where l_orderkey in (select k from picked where n % 3 = 2)",
        "create or replace temp table d_customer as select 'U' as Op, * replace (c_acctbal + 1 as c_acctbal,"
        " if(c_mktsegment = 'BUILDING', 'MACHINERY', 'BUILDING') as c_mktsegment) from customer"
        f" order by hash(c_custkey, {number}) limit (select ceil(count(*) * {change.share} / 10)::bigint from customer)",
    ]


def _apply(db: duckdb.DuckDBPyConnection, table: str) -> None:
    keys = ", ".join(PRIMARY_KEYS[table])
    db.execute(f"delete from {table} where ({keys}) in (select ({keys}) from d_{table})")
    db.execute(f"insert into {table} select * exclude (Op) from d_{table} where Op <> 'D'")
