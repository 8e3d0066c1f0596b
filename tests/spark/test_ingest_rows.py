"""Rows that are more than upserts: truncates, unlogged values, merged shards, tables without a key."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.ingest_lake import Lake, event, report_of, table

UNAVAILABLE = "__debezium_unavailable_value"


def test_a_truncate_empties_what_came_before_it(spark: SparkSession, tmp_path: Path) -> None:
    origin = {"primary_key": ("shard", "id"), "origin": "shard"}
    shop = Lake(spark, tmp_path, (table(order_by=("m",)), table("shards", table=r"s_\d", **origin)))
    shop.ingest(
        *(event("c", {"id": number, "m": 5}) for number in (1, 2)),
        *(event("c", {"id": 1}, table=shard) for shard in ("s_1", "s_2")),
    )
    assert shop.rows("shards", "shard", "id") == [("db.s_1", 1), ("db.s_2", 1)]
    shop.ingest(
        event("c", {"id": 3, "m": 1}),
        event("t"),
        event("t", table="s_1"),
        # Of the same moment but after the truncate, and of an earlier moment: late.
        event("c", {"id": 2, "m": 5}),
        event("c", {"id": 1, "m": 4}),
        event("c", {"id": 4, "m": 0}),
    )
    assert shop.rows("t", "id", "m") == [(2, 5), (4, 0)]
    assert shop.rows("shards", "shard", "id") == [("db.s_2", 1)]
    assert (shop.commits("t"), shop.commits("shards")) == (2, 2)
    shop.ingest(event("t"))
    assert shop.rows("t", "id") == []


def test_a_value_that_was_not_logged_stays_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(order_by=("m",)), table("p", updates="partial")))
    shop.ingest(
        event("c", {"id": 1, "m": 1, "text": "long", "n": 1}),
        event("c", {"id": 2, "m": 1, "text": None, "n": 1}),
        event("c", {"id": 1, "a": "a", "b": "b"}, table="p"),
    )
    report = shop.ingest(
        event("u", {"id": 1, "m": 2, "text": UNAVAILABLE, "n": 2}),
        event("u", {"id": 2, "m": 2, "text": UNAVAILABLE, "n": 2}),
        event("c", {"id": 3, "m": 2, "text": "in the batch", "n": 1}),
        event("u", {"id": 3, "m": 3, "text": UNAVAILABLE, "n": 3}),
        # The row before knows it, though no earlier version does.
        event("u", {"id": 4, "m": 3, "text": UNAVAILABLE, "n": 3}, {"id": 4, "m": 2, "text": "before", "n": 2}),
        event("u", {"id": 5, "m": 3, "text": UNAVAILABLE, "n": 3}),
        # Late: what the table holds is newer, so nobody needs its value.
        event("u", {"id": 1, "m": 0, "text": UNAVAILABLE, "n": 0}),
        event("u", {"id": 1, "b": "new"}, table="p"),
        event("u", {"id": 1, "a": None}, table="p"),
    )
    assert shop.rows("t", "id", "text", "n") == [(1, "long", 2), (2, None, 2), (3, "in the batch", 3), (4, "before", 3)]
    assert shop.rows("p", "id", "a", "b") == [(1, None, "new")]
    why = "text: the source did not log this value, and no earlier version of the row is known"
    assert [(position, reason) for _, position, reason, _ in shop.dead_letters()] == [(6, why)]
    assert report.dead_letters == 1


def test_a_table_without_a_key_takes_every_insert_once(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(primary_key=()),))
    shop.ingest(event("r", {"a": 1}), event("c", {"a": 1}), event("c", {"a": None}))
    shop.ingest(event("c", {"a": 1}))
    again = shop.run("earliest")
    assert report_of(again).upserts == 4
    assert shop.rows() == [(1,), (1,), (1,), (None,)]
