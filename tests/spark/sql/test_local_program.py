"""Programs that DuckDB runs and those that Spark runs bring tables to the same rows, keys and hidden state."""

from __future__ import annotations

from datetime import date
from decimal import Decimal as D
from pathlib import Path
from typing import Literal
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.duckdb.programs import local_steps
from sqlmesh_like.duckdb.programs.shared_lookups import SharedLookups
from sqlmesh_like.hudi import change_log
from sqlmesh_like.plan import frontier_advance, model_plan
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.spark.lake import Lake, Row, Table, ordered

MODELS = {
    "flat": "select id, upper(city) as city, amount, price * 2 as twice from @orders where amount > 1",
    "parted": "{{ config(partition_by='city', unique_key='id') }} select id, city, amount from @orders",
    "joined": "select o.id, o.amount * b.factor as amount, b.name from @orders as o join @buyers as b"
              " on o.buyer = b.id",
    "outer_joined": "select o.id, b.name from @orders as o left join @buyers as b on o.buyer = b.id",
    "agg": "select city, count(*) as n, sum(amount) as total, avg(amount) as mean, min(day) as first,"
           " max(amount) as hi, avg(buyer) as b from @orders group by city",
    "agg_of_join": "select b.name, sum(o.amount) as total from @orders as o join @buyers as b"
                   " on o.buyer = b.id group by b.name having count(*) > 1",
    "distinct_buyers": "select city, count(distinct buyer) as n from @orders group by city",
    "months": "{{ config(partition_by='month') }} select date_trunc('month', day) as month,"
              " max(amount) - min(amount) as spread from @orders group by 1",
    "without_orders": "select id, name from @buyers as b where not exists"
                      " (select 1 from @orders as o where o.buyer = b.id)",
    "downstream": "select n, count(*) as cities, sum(total) as total from {{ ref('agg') }} group by n",
    "chosen": "select city, max_by(amount, day) as last, min_by(price, amount) filter (where id > 1) as low,"
              " first(buyer) as a, last(price, true) as b, max_by(city, buyer) as c from @orders group by city",
    "chosen_beside": "select city, max_by(id, price) as dearest, count(distinct buyer) as n from @orders group by city",
    "spread": "select city, stddev(amount) as s, var_pop(buyer) as v, regr_sxx(amount, buyer) as x from @orders"
              " group by city",
    "ranked": "select id, city, rank() over (partition by city order by amount desc) as place from @orders"
              " qualify place <= 2",
    "rest": "select id, amount from @orders order by day, id offset 2",
    "latest": "select id, city, amount from @orders"
              " qualify row_number() over (partition by city order by day desc, id) = 1",
}  # fmt: skip
"""Models that stand for the others: of rows, of a join's groups, of partitions, of windows."""
NEVER_HERE = {"sounds": "select id, soundex(city) as x from @orders"}


def order(id: int, buyer: int | None, amount: str | None, price: float | None, city: str | None, day: str) -> Row:
    return (id, buyer, None if amount is None else D(amount), price, city, day)


BATCHES = (
    ([order(1, 7, "5.00", 0.1, "x", "2024-01-31"), order(2, 7, "0.50", None, "y", "2024-02-01"),
      order(3, 8, "9.00", -1.5, None, "2024-02-29"), order(4, None, None, 2.0, "x", "1969-12-31")], [],
     [(7, "ann", D("1.50")), (8, "bob", D("-2.00"))], []),
    ([order(1, 8, "5.00", 0.1, "y", "2024-01-31"), order(5, 7, "2.25", 1e10, "", "2024-03-01"),
      order(6, 9, "3.00", 0.0, "x", "2024-03-02")], [4], [(9, "", D("0.00"))], []),
    ([order(3, 8, "9.00", -1.5, None, "2024-02-29")], [1, 2], [(7, "Ann", D("1.50"))], [8]),
)  # fmt: skip


def sources(lake: Lake, kind: Literal["cow", "mor"] = "cow") -> tuple[Table, Table]:
    columns = "id int, buyer int, amount decimal(12,2), price double, city string, day date"
    orders = lake.source("orders", columns, buckets=2, table_type=kind)
    return orders, lake.source("buyers", "id int, name string, factor decimal(6,2)", table_type=kind)


def written(lake: Lake, orders: Table, buyers: Table, batch: tuple[list[Row], list[int], list[Row], list[int]]) -> None:
    rows, gone, people, left = batch
    typed = [(*row[:5], date.fromisoformat(str(row[5]))) for row in rows]
    if typed or gone:
        orders.upsert(*typed, delete=[(id, None, None, None, None, None) for id in gone])
    if people or left:
        buyers.upsert(*people, delete=[(id, None, None) for id in left])


def stored(lake: Lake, name: str) -> list[tuple[object, ...]]:
    """All of a table, keys and hidden state too."""
    frame = lake.spark.read.format("hudi").load(lake.uri(name))
    return ordered(frame.select(*sorted(c for c in frame.columns if not c.startswith("_hoodie_"))))


@pytest.mark.release
@pytest.mark.parametrize(("kind", "is_looked_up"), [("cow", True), ("cow", False), ("mor", True)])
def test_both_engines_bring_tables_to_the_same_rows_keys_and_state(
    kind: Literal["cow", "mor"],
    is_looked_up: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(change_log, "LOGGED_FROM_BYTES", 0)
    if is_looked_up:  # as in large inputs, of which models share the rows that they look up
        for module in (model_plan, frontier_advance, local_steps):
            monkeypatch.setattr(module, "SMALL_INPUT", 0)
    shared = mock.patch.object(SharedLookups, "rows", autospec=True, side_effect=SharedLookups.rows).start()
    lakes = [Lake(spark, tmp_path / name, delta_engine=name) for name in ("auto", "spark")]  # type: ignore[arg-type]
    tables = [sources(lake, kind) for lake in lakes]
    for lake in lakes:
        for name, sql in (MODELS | NEVER_HERE).items():
            lake.model(name, f"{{{{ config(table_type='{kind}') }}}} {sql}")
    computed: dict[str, set[str]] = {name: set() for name in MODELS | NEVER_HERE}
    for batch in BATCHES:
        for lake, (orders, buyers) in zip(lakes, tables, strict=True):
            written(lake, orders, buyers, batch)
            lake.run_well()
        lakes[0].assert_maintained()
        for name, result in lakes[0].results.items():
            if result.strategy not in ("full_refresh", "no_op"):
                computed[name].add(str(result.engine))
        for name, result in lakes[1].results.items():
            assert result.engine in (None, "spark"), name
        for name in MODELS:
            assert stored(lakes[0], name) == stored(lakes[1], name), name
    assert {name for name, engines in computed.items() if engines != {"duckdb"}} == set(NEVER_HERE)
    assert (shared.call_count > 10) == is_looked_up
    mock.patch.stopall()


@pytest.mark.release
def test_a_run_without_effect_starts_no_spark_and_moves_the_frontier(spark: SparkSession, tmp_path: Path) -> None:
    first = Lake(spark, tmp_path)
    orders, _ = sources(first)
    first.model("large", "select id, amount from @orders where amount > 100")
    orders.upsert(*[(id, 1, D("500.00"), 0.5, "x", None) for id in (1, 2)])
    first.run_well()
    orders.upsert((3, 1, D("5.00"), 0.5, "x", None))

    def never() -> SparkSession:
        raise AssertionError("Spark was started")

    without = Lake(spark, tmp_path, start=never, fresh=False)
    result = without.run()["large"]
    assert (result.status, result.engine, result.rows) == ("success", "duckdb", 0)
    assert first.commits("large") == 2
    assert first.plan("large").strategy == "no_op"
    orders.upsert((3, 1, D("600.00"), 0.5, "x", None))
    without.run_well()
    assert [row[0] for row in first.rows("large")] == [1, 2, 3]


@pytest.mark.release
def test_a_run_commits_small_changes_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    first = Lake(spark, tmp_path)
    orders, buyers = sources(first)
    for name, sql in MODELS.items():
        first.model(name, sql)
    written(first, orders, buyers, BATCHES[0])
    first.run_well()
    written(first, orders, buyers, BATCHES[1])

    def never() -> SparkSession:
        raise AssertionError("Spark was started")

    without = Lake(spark, tmp_path, start=never, fresh=False)
    results = without.run()
    assert {name: result.status for name, result in results.items()} == dict.fromkeys(MODELS, "success")
    assert all(first.commits(name) == 2 for name, result in results.items() if result.rows)
    first.assert_maintained()
    written(first, orders, buyers, BATCHES[2])
    first.use_engine("spark")  # which goes on from these commits
    first.run_well()
    first.assert_maintained()


@pytest.mark.release
def test_files_whose_commits_are_archived_are_read_here(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    orders, _ = sources(lake)
    lake.model("buyers_of", "select city, count(distinct buyer) as n from @orders group by city")
    orders.upsert(*[(id, id % 3, D("5.00"), 0.5, "x", None) for id in range(8)])
    for amount in range(7):
        orders.upsert((1, 1, D(amount), 0.5, "x", None))
    clean_history(spark, orders.uri, 1)
    timeline = orders.timeline
    first = timeline.commit_instants[0].requested
    assert any(each.instant < first for each in timeline.slices(orders.frontier()).values())
    lake.run_well()
    orders.upsert((1, 7, D("1.00"), 0.5, "x", None), (9, 8, D("1.00"), 0.5, "y", None))
    assert lake.run_well() == {"buyers_of": "group_recompute"}
    assert lake.results["buyers_of"].engine == "duckdb"
    assert lake.rows("buyers_of") == [("x", 4), ("y", 1)]
    lake.assert_maintained()


def test_what_cannot_be_read_here_is_left_to_spark_which_says_why(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    orders, _ = sources(lake)
    lake.model("flat", "select id, amount from @orders")
    orders.upsert((1, 1, D("5.00"), 0.5, "x", None))
    lake.run_well()
    orders.upsert((1, 1, D("6.00"), 0.5, "x", None), (2, 1, D("7.00"), 0.5, "x", None))
    newest = max(Path(orders.uri).rglob("*.parquet"), key=lambda path: path.stat().st_mtime)
    newest.unlink()
    result = lake.run()["flat"]
    assert result.status == "error"
    assert "1 data files of" in result.message and "are missing" in result.message
