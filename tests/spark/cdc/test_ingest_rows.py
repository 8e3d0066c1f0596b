"""Rows that are more than upserts: truncates, unlogged values, merged shards, tables without a key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.stream.batch import MANY_TABLES
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import BY_MONTH, Lake, event, report_of, table

UNAVAILABLE = "__debezium_unavailable_value"


@pytest.mark.checklist(4)
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


def test_a_table_of_many_is_truncated_and_gets_columns_in_one_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Events of many tables are sorted: no plan may depend on the order of rows by columns that it has left out."""
    fields = [{"type": "int32", "field": "id", "optional": False}, {"type": "string", "field": "v", "optional": True}]
    more = [*fields, {"type": "int64", "field": "w", "optional": True}]
    lake = Lake(spark, tmp_path, (table(), *(table(f"other_{number}") for number in range(MANY_TABLES))))
    lake.ingest(event("c", {"id": 1, "v": "a"}, fields=fields), event("c", {"id": 2, "v": "a"}, fields=fields))
    report = lake.ingest(
        event("u", {"id": 1, "v": "b"}, {"id": 1, "v": "a"}, fields=fields),
        event("t", fields=fields),
        event("c", {"id": 3, "v": "c", "w": 1}, fields=more),
    )
    assert not report.failed, report.tables
    assert lake.rows("t", "id", "v", "w") == [(3, "c", 1)]


@pytest.mark.checklist(22)
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
    why = "text: the source did not log this value, and no earlier version of the row is known (its key changed? let"
    assert [(position, reason.startswith(why)) for _, position, reason, _ in shop.dead_letters()] == [(6, True)]
    assert report.dead_letters == 1


@pytest.mark.checklist(18)
def test_a_table_without_a_key_takes_every_insert_once(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(primary_key=()),))
    shop.ingest(event("r", {"a": 1}), event("c", {"a": 1}), event("c", {"a": None}))
    shop.ingest(event("c", {"a": 1}))
    again = shop.run("earliest")
    assert report_of(again).upserts == 4
    assert shop.rows() == [(1,), (1,), (1,), (None,)]


@pytest.mark.release
def test_what_does_not_fit_goes_where_the_policy_says(spark: SparkSession, tmp_path: Path) -> None:
    names = ("t", "u")
    tables = tuple(table(name, columns={"n": "int"} if name == "u" else None) for name in names)
    day = [{"field": "id", "type": "int32"}, {"field": "n", "type": "boolean"}]
    number = [{"field": "id", "type": "int32"}, {"field": "n", "type": "int64"}]
    shop = Lake(spark, tmp_path, tables, {"on_schema_change": "lenient"})
    shop.ingest(event("c", {"id": 1, "n": True}, fields=day))
    report = shop.ingest(event("c", {"id": 2, "n": 7}, fields=number), event("c", {"id": 3, "n": False}, fields=day))
    rows = [(1, True, None), (2, None, 7), (3, False, None)]
    assert shop.rows("t", "id", "n", "n__bigint") == rows
    assert report_of(report).changes == ("+ n__bigint bigint",)
    shop.settings = {"on_schema_change": "fail"}
    failed = shop.ingest(event("c", {"id": 4, "x": 7}), event("c", {"id": 1, "n": 1}, table="u"))
    assert "column 'x' is new in ods.t, and on_schema_change is fail" in str(report_of(failed).error)
    assert (shop.rows("t", "id", "n", "n__bigint"), shop.rows("u", "id", "n")) == (rows, [(1, 1)])
    shop.settings = {"on_schema_change": "ignore"}
    assert not shop.run().failed
    assert shop.rows("t", "id", "n", "n__bigint") == [*rows, (4, None, None)]
    assert "x" not in shop.types()


@pytest.mark.checklist(18)
def test_a_full_load_is_inserted_in_bulk_and_changes_find_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    many = {"hoodie.bucket.index.num.buckets": "4"}  # so that rows have to be found in many files
    types = {"id": "int", "at": "timestamp"}
    by_month = replace(BY_MONTH, column="at")
    months = table(columns=types, partition_by=by_month, table_type="mor", hudi=many)
    shop = Lake(spark, tmp_path, (months, table("o", order_by=("v",), hudi=many)))

    def row(id: int, month: int, v: int) -> dict[str, object]:
        return {"id": id, "at": f"2022-{month:02d}-01T00:00:00Z", "v": v}

    loaded = [row(id, 1 + id % 2, 0) for id in range(8)]
    gone = event("d", None, row(9, 1, 0))
    shop.ingest(
        *(event("r", each, table=name) for name in ("t", "o") for each in loaded), event("c", row(9, 1, 0)), gone
    )
    changes = [
        event("u", row(0, 1, 1), row(0, 1, 0)),
        event("u", row(1, 1, 1), row(1, 2, 0)),
        event("d", None, row(2, 1, 0)),
    ]
    shop.ingest(*changes, event("r", row(3, 2, 2)), event("c", row(8, 1, 3)), event("u", row(1, 2, 1), table="o"))
    for name in ("t", "o"):
        assert [commit.operation for commit in Timeline(shop.uri(name)).data_commits] == ["BULK_INSERT", "UPSERT"]
    assert shop.rows("t", "id", "year_month", "v") == [
        (0, "202201", 1),
        (1, "202201", 1),
        (3, "202202", 2),
        (4, "202201", 0),
        (5, "202202", 0),
        (6, "202201", 0),
        (7, "202202", 0),
        (8, "202201", 3),
    ]
    assert shop.rows("o", "id", "v") == [(id, int(id == 1)) for id in range(8)]


@pytest.mark.release
def test_a_renamed_column_stays_one_column(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(order_by=("m",)),))
    shop.ingest(event("c", {"id": 1, "mail": "a", "m": 1}), event("c", {"id": 2, "mail": "b", "m": 1}))
    shop.tables = (replace(shop.tables[0], renamed={"email": "mail"}),)
    # The new name's default is for rows of a column that was added, not for these.
    fields = [{"field": "id", "type": "int64"}, {"field": "email", "type": "string", "default": "?"}]
    fields.append({"field": "m", "type": "int64"})
    changed = event("u", {"id": 1, "email": "c", "m": 2}, fields=fields)
    report = shop.ingest(changed, event("c", {"id": 3, "mail": "d", "m": 1}))
    assert shop.rows("t", "id", "email") == [(1, "c"), (2, "b"), (3, "d")]
    assert report_of(report).changes == ("mail is email string now",)
    again = shop.ingest(event("u", {"id": 2, "email": "e", "m": 2}))
    assert (shop.rows("t", "id", "email"), report_of(again).changes) == ([(1, "c"), (2, "e"), (3, "d")], ())
    newest = Timeline(shop.uri()).data_commits
    assert [commit.column_changes for commit in newest] == [(), (), ("mail is email string now",), ()]
