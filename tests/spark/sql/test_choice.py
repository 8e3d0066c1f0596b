"""Strategies take turns on one table: the plan may choose between them anew in each run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sqlmesh_like.classify.strategy import Strategy
from sqlmesh_like.hudi import file_sizing
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED, KEY, PARTITION
from sqlmesh_like.plan import choice, cost
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables import hudi_table
from sqlmesh_like.spark.tables.hudi_table import HudiTable
from tests.spark.lake import Lake, signed

Cell = tuple[str, str]
"""Partition and key of a row."""


class Turns:
    """A table of four buckets a partition beside the rows that it should hold, by partition and key."""

    def __init__(self, spark: SparkSession, uri: str, table_type: Literal["cow", "mor"]) -> None:
        self.spark = spark
        self.table = HudiTable(uri, "turns", (KEY,), PARTITION, table_type=table_type, buckets=4)
        self.rows: dict[Cell, int] = {}

    def build(self, rows: Mapping[Cell, int]) -> None:
        hudi_table.write(self._frame(rows), self.table, "bulk_insert", {})
        self.rows = dict(rows)
        self._compare({})

    def overwrite(self, partitions: list[str], rows: Mapping[Cell, int]) -> None:
        before = dict(self.rows)
        paths = [f"{PARTITION}={name}" for name in partitions]
        hudi_table.overwrite_partitions(self._frame(rows), self.table, paths, {})
        self.rows = {cell: value for cell, value in before.items() if cell[0] not in partitions} | dict(rows)
        self._compare(before)

    def merge(self, rows: Mapping[Cell, int], deleted: list[Cell]) -> None:
        before = dict(self.rows)
        gone = {cell: before[cell] for cell in deleted}
        frame = self._frame(rows).unionByName(self._frame(gone).withColumn(IS_DELETED, F.lit(True)))
        hudi_table.write(frame, self.table, "upsert", {})
        self.rows = {cell: value for cell, value in (before | dict(rows)).items() if cell not in gone}
        self._compare(before)

    def _frame(self, rows: Mapping[Cell, int]) -> DataFrame:
        listed = [(partition, key, value, False) for (partition, key), value in rows.items()]
        return self.spark.createDataFrame(listed, f"{PARTITION} string, {KEY} string, v int, {IS_DELETED} boolean")

    def _compare(self, before: Mapping[Cell, int]) -> None:
        """Hudi's own reader, the feed's snapshot and the feed's change all tell these rows."""
        wanted = sorted((*cell, value) for cell, value in self.rows.items())
        shown = self.spark.read.format("hudi").load(self.table.uri).select(PARTITION, KEY, "v")
        assert sorted(tuple(row) for row in shown.collect()) == wanted
        timeline = Timeline(self.table.uri)
        end = timeline.frontier
        assert end is not None
        feed = change_feed(self.spark, timeline)
        current = feed.current(end, hidden=True).select(PARTITION, KEY, "v")
        assert sorted(tuple(row) for row in current.collect()) == wanted
        if not before:
            return
        start = timeline.data_commits[-2].instant.frontier
        left = sorted((-1, value) for cell, value in before.items() if self.rows.get(cell) != value)
        came = sorted((1, value) for cell, value in self.rows.items() if before.get(cell) != value)
        change = signed(feed.changes(start, end).select(KEY, "_sml_weight", "v"))
        assert sorted(change) == sorted([*left, *came])


def cells(partition: str, first: int, last: int, value: int) -> dict[Cell, int]:
    """Rows with different values in one partition."""
    return {(partition, f"k{number}"): value + number for number in range(first, last)}


@pytest.mark.release
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_overwrites_and_upserts_take_turns_on_one_table_of_several_buckets(
    spark: SparkSession, tmp_path: Path, table_type: Literal["cow", "mor"]
) -> None:
    turns = Turns(spark, str(tmp_path / "turns"), table_type)
    turns.build(cells("a", 0, 12, 100) | cells("b", 0, 12, 200) | cells("c", 0, 3, 300))
    turns.overwrite(["a", "c"], cells("a", 6, 14, 1000))  # c is emptied, some keys of a stay
    turns.merge(
        cells("a", 10, 16, 2000) | cells("b", 3, 5, 2100) | cells("c", 1, 3, 2200) | cells("d", 0, 2, 2300),
        [("a", "k6"), ("a", "k7"), ("b", "k0")],
    )
    turns.overwrite(["a", "b"], cells("a", 7, 20, 3000) | cells("b", 0, 1, 3100))
    turns.merge(cells("b", 0, 6, 4000), [("a", f"k{number}") for number in range(7, 20)])  # a loses its last row
    turns.overwrite(["a", "d"], cells("a", 0, 5, 5000))
    turns.merge(cells("a", 4, 9, 6000), [("b", "k5"), ("c", "k1")])


MODELS = {
    # Groups of which the table holds the old rows, and a join of which both sides are read as they were.
    "buyers": "{{ config(partition_by='ym') }} "
    "select ym, city, count(distinct buyer) as n from @orders group by ym, city",
    "met": "{{ config(partition_by='ym', table_type='mor') }} select o.ym, o.id, g.gift "
    "from @orders as o left join @gifts as g on o.ym = g.ym and o.buyer = g.buyer",
}


def take(monkeypatch: pytest.MonkeyPatch, strategy: Strategy) -> None:
    """Let earlier runs say that this strategy takes no time, and others very long."""
    monkeypatch.setattr(cost, "WORTH_WEIGHING", 0)
    monkeypatch.setattr(cost, "WORTH_SWITCHING", 0.0)
    monkeypatch.setattr(choice, "paces", lambda state: {strategy: 1e-6, "full_refresh": 1e6})


@pytest.mark.release
def test_a_model_is_maintained_by_either_strategy_in_turn(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_sizing, "BYTES_A_FILE", 1000)
    orders = lake.source("orders", "id int, buyer int, city string, ym string", partition="ym")
    gifts = lake.source("gifts", "id int, buyer int, gift string, ym string", partition="ym")
    for name, sql in MODELS.items():
        lake.model(name, sql)
    orders.upsert(*[(i, i % 5, "xyz"[i % 3], f"m{i % 2}") for i in range(12)])
    gifts.upsert((1, 1, "cup", "m1"), (2, 2, "pen", "m0"))
    lake.run_well()
    prints = {name: lake.plan(name).fingerprint for name in MODELS}

    def follow(strategy: Strategy) -> None:
        take(monkeypatch, strategy)
        assert lake.run_well() == dict.fromkeys(MODELS, strategy)
        lake.assert_maintained()
        for name in MODELS:
            record = lake.plan(name).target.record
            assert record is not None
            assert record.fingerprint == prints[name]
            assert record.buckets > 1
            assert len(lake.keys(name)) == len(set(lake.keys(name)))

    orders.upsert((0, 9, "w", "m0"), (30, 2, "w", "m2"), delete=[(2, 2, "z", "m0")])
    gifts.upsert((3, 2, "mug", "m2"), (2, 4, "pen", "m0"))
    follow("group_recompute")
    assert {reason.rule for name in MODELS for reason in lake.results[name].reasons} == {"CST002"}
    message = lake.results["met"].estimate
    assert message is not None
    assert isinstance(message["strategies"], dict)
    assert list(message["strategies"]) == ["group_recompute", "partition_rescan", "recompute_merge"]
    orders.upsert((2, 2, "z", "m0"), (1, 1, None, "m1"), delete=[(30, 2, "w", "m2")])  # a month is emptied
    follow("partition_rescan")
    orders.upsert((31, 3, "w", "m2"), (32, 1, "x", "m0"), delete=[(0, 9, "w", "m0"), (4, 4, "y", "m0")])
    gifts.upsert((4, 3, "hat", "m2"), delete=[(2, 4, "pen", "m0")])
    follow("group_recompute")


WHOLE = {
    "sums": "select city, count(*) as n, sum(buyer) as s, max(buyer) as hi, avg(id) as mean from @orders group by city",
    "rows_of": "{{ config(table_type='mor') }} select id, upper(city) as city from @orders where buyer > 0",
    "given": "select o.id, g.gift from @orders as o join @gifts as g on o.buyer = g.buyer",
    "months": "{{ config(partition_by='ym', unique_key=['ym', 'city']) }} "
    "select ym, city, count(distinct buyer) as n from @orders group by ym, city",
    "above": "select n, count(*) as cities from {{ ref('sums') }} group by n",
}


def take_whole(monkeypatch: pytest.MonkeyPatch, *, is_taken: bool) -> None:
    """Let earlier runs say that comparing the whole query takes no time, or very long."""
    monkeypatch.setattr(cost, "WORTH_WEIGHING", 0)
    monkeypatch.setattr(cost, "WORTH_SWITCHING", 0.0)
    pace = 1e-6 if is_taken else 1e6
    monkeypatch.setattr(choice, "paces", lambda state: {"recompute_merge": pace, "full_refresh": 1.0})


@pytest.mark.release
@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_the_whole_query_and_deltas_take_turns_on_one_table(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, engine: Literal["auto", "spark"]
) -> None:
    lake.use_engine(engine)
    orders = lake.source("orders", "id int, buyer int, city string, ym string", partition="ym")
    gifts = lake.source("gifts", "id int, buyer int, gift string")
    for name, sql in WHOLE.items():
        lake.model(name, sql)
    orders.upsert(*[(i, i % 5, "xyz"[i % 3], f"m{i % 2}") for i in range(12)])
    gifts.upsert((1, 1, "cup"), (2, 2, "pen"))
    lake.run_well()

    def follow(*, whole: bool) -> None:
        take_whole(monkeypatch, is_taken=whole)
        taken = lake.run_well()
        assert all((strategy == "recompute_merge") == whole for strategy in taken.values()), taken
        lake.assert_maintained()
        for name in WHOLE:
            assert len(lake.keys(name)) == len(set(lake.keys(name)))

    orders.upsert((0, 9, "w", "m0"), (30, 2, "w", "m2"), delete=[(2, 2, "z", "m0")])
    gifts.upsert((3, 3, "mug"), (2, 4, "pen"))
    follow(whole=True)
    assert {reason.rule for name in WHOLE for reason in lake.results[name].reasons} == {"CST003"}
    changed = {name: lake.results[name].rows for name in WHOLE}
    assert changed["rows_of"] == 3, "two upserts and a delete, whatever the table holds"
    assert {lake.results[name].engine for name in WHOLE} == {"spark" if engine == "spark" else "duckdb"}
    orders.upsert((2, 2, "z", "m0"), (1, 1, "q", "m1"), delete=[(30, 2, "w", "m2")])
    follow(whole=False)
    orders.upsert((31, 3, "w", "m2"), delete=[(0, 9, "w", "m0"), (4, 4, "y", "m0"), (5, 0, "z", "m1")])
    gifts.upsert((4, 3, "hat"), delete=[(2, 4, "pen")])
    follow(whole=True)
    orders.upsert((5, 1, "z", "m1"), delete=[(31, 3, "w", "m2")])
    follow(whole=False)
