"""The change feed on real tables: what was, what is, and what lies between two frontiers."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.tables import hudi_table
from tests.spark.lake import CLEAN_OLD_VERSIONS, Lake, Table, archiving, ordered, signed


def changed(table: Table, start: str, end: str) -> list[tuple[object, ...]]:
    return signed(table.feed().changes(start, end))


def snapshot(table: Table, frontier: str) -> list[tuple[object, ...]]:
    return ordered(table.feed().current(frontier).drop("_sml_key"))


@pytest.fixture
def people(lake: Lake) -> Table:
    return lake.source("people", "id int, name string, ym string", partition="ym")


@pytest.mark.checklist(48)
def test_a_pinned_snapshot_stays_while_the_table_moves_on(people: Table) -> None:
    first = people.upsert((1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2"))
    rows = [(1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2")]
    second = people.upsert((1, "A", "m1"), (4, "d", "m3"), delete=[(2, "b", "m1")])
    people.write((9, "i", "m2"), operation="insert_overwrite")
    assert snapshot(people, first) == rows
    assert snapshot(people, second) == [(1, "A", "m1"), (3, "c", "m2"), (4, "d", "m3")]
    assert snapshot(people, people.frontier()) == [(1, "A", "m1"), (4, "d", "m3"), (9, "i", "m2")]


def test_insert_update_and_delete_of_one_commit_are_told_apart(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2"))
    end = people.upsert((1, "A", "m1"), (4, "d", "m1"), delete=[(2, "b", "m1")])
    assert changed(people, start, end) == [(-1, 1, "a", "m1"), (-1, 2, "b", "m1"), (1, 1, "A", "m1"), (1, 4, "d", "m1")]


@pytest.mark.checklist(49, 68)
def test_commits_of_one_range_add_up(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2"))
    people.upsert((1, "x", "m1"), (5, "e", "m9"))
    middle = people.upsert(delete=[(1, "x", "m1"), (5, "e", "m9"), (3, "c", "m2")])
    end = people.upsert((1, "z", "m1"), (2, "b", "m1"))
    assert changed(people, start, middle) == [(-1, 1, "a", "m1"), (-1, 3, "c", "m2")]
    assert changed(people, middle, end) == [(1, 1, "z", "m1")]
    assert changed(people, start, end) == [(-1, 1, "a", "m1"), (-1, 3, "c", "m2"), (1, 1, "z", "m1")]


def test_deleting_every_row_of_a_file_group_and_inserting_again(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"))
    empty = people.upsert(delete=[(1, "a", "m1"), (2, "b", "m1")])
    again = people.upsert((1, "a", "m1"))
    assert changed(people, start, empty) == [(-1, 1, "a", "m1"), (-1, 2, "b", "m1")]
    assert snapshot(people, empty) == []
    assert changed(people, empty, again) == [(1, 1, "a", "m1")]
    assert changed(people, start, again) == [(-1, 2, "b", "m1")]


def test_a_rewrite_with_the_same_content_nets_to_nothing(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, None, "m1"))
    end = people.upsert((1, "a", "m1"), (2, None, "m1"), delete=[(7, "never there", "m1")])
    assert start != end
    assert changed(people, start, end) == []


def test_overwriting_a_partition_and_the_table_are_all_old_minus_all_new(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2"))
    middle = people.write((2, "b", "m1"), (5, "e", "m1"), operation="insert_overwrite")
    end = people.write((3, "c", "m2"), operation="insert_overwrite_table")
    assert changed(people, start, middle) == [(-1, 1, "a", "m1"), (1, 5, "e", "m1")]
    assert changed(people, middle, end) == [(-1, 2, "b", "m1"), (-1, 5, "e", "m1")]
    assert changed(people, start, end) == [(-1, 1, "a", "m1"), (-1, 2, "b", "m1")]
    assert snapshot(people, middle) == [(2, "b", "m1"), (3, "c", "m2"), (5, "e", "m1")]


@pytest.mark.checklist(46)
def test_clustering_in_between_nets_to_nothing(lake: Lake) -> None:
    table = lake.source("c", "id int, name string")
    simple = {"hoodie__index__type": "SIMPLE"}
    start = table.write((1, "a"), (2, "b"), (3, "c"), **simple)
    inline = {"hoodie__clustering__inline": "true", "hoodie__clustering__inline__max__commits": "1"}
    end = table.write((1, "A"), **simple, **inline)
    assert any(commit.operation == "CLUSTER" for commit in table.timeline.commits)
    assert changed(table, start, end) == [(-1, 1, "a"), (1, 1, "A")]
    later = table.write((2, "B"), **simple)
    assert changed(table, end, later) == [(-1, 2, "b"), (1, 2, "B")]
    assert changed(table, start, later) == [(-1, 1, "a"), (-1, 2, "b"), (1, 1, "A"), (1, 2, "B")]
    assert snapshot(table, start) == [(1, "a"), (2, "b"), (3, "c")]


def test_values_of_every_type_come_back_as_written(lake: Lake) -> None:
    columns = (
        "id int, d38 decimal(38,10), at timestamp, day date, text string, flags boolean, small smallint, tiny tinyint, "
        "big bigint, f float, g double, raw binary, tags array<string>, s struct<a:int,b:array<struct<c:date>>>"
    )
    table = lake.source("typed", columns)
    one = (
        1, Decimal("1234567890123456789012345678.0123456789"), datetime(1959, 12, 31, 23, 59, 59, 123457),
        date(1581, 1, 2), "ü\u0000 \n'\"\\ 漢字 🦆", True, -3, 7, 2**62, 0.1, -0.1, bytearray(b"\x00\xff"),
        ["x", None, ""], (None, [(date(1969, 12, 31),), None]),
    )  # fmt: skip
    nulls = (2, *[None] * 13)
    start = table.write(one, nulls)
    (back, empty) = snapshot(table, start)
    assert back[:5] == one[:5]
    assert back[5:9] == one[5:9]
    assert back[10:13] == one[10:13]
    assert back[13] == one[13]
    assert empty == nulls
    end = table.write(nulls, (*one[:2], datetime(1959, 12, 31, 23, 59, 59, 123458), *one[3:]))
    change = changed(table, start, end)
    assert [(row[0], row[3]) for row in change] == [(-1, one[2]), (1, datetime(1959, 12, 31, 23, 59, 59, 123458))]


@pytest.mark.release
def test_an_input_widened_between_two_slices_is_read_right(lake: Lake) -> None:
    narrow = lake.source("w", "id int, n int, d decimal(10,2), f float, p string", partition="p")
    start = narrow.write((1, 5, Decimal("1.50"), 0.1, "x"), (2, 2**31 - 1, None, None, "y"))
    wide = lake.source("w", "id int, n bigint, d decimal(14,2), f double, p string, extra string", partition="p")
    end = wide.write((1, 2**40, Decimal("999999999999.99"), 0.5, "x", "new"), (3, 7, Decimal("2.00"), 0.1, "z", None))
    assert changed(wide, start, end) == [
        (-1, 1, 5, Decimal("1.50"), 0.1, "x", None),
        (1, 1, 2**40, Decimal("999999999999.99"), 0.5, "x", "new"),
        (1, 3, 7, Decimal("2.00"), 0.1, "z", None),
    ]
    assert snapshot(wide, end)[1] == (2, 2**31 - 1, None, None, "y", None)
    assert snapshot(wide, start)[0][:3] == (1, 5, Decimal("1.50"))


@pytest.mark.release
def test_a_struct_that_gains_a_field_between_two_slices_is_read_right(lake: Lake) -> None:
    narrow = lake.source("s", "id int, s struct<a:int>, l array<struct<a:int>>, p string", partition="p")
    start = narrow.write((1, (5,), [(1,), None], "x"), (2, None, None, "y"))
    columns = "id int, s struct<a:bigint,b:string>, l array<struct<a:int,b:int>>, p string"
    wide = lake.source("s", columns, partition="p")
    end = wide.write((3, (2**40, "b"), [(1, 2)], "x"))
    assert changed(wide, start, end) == [(1, 3, (2**40, "b"), [(1, 2)], "x")]
    assert snapshot(wide, end)[0] == (1, (5, None), [(1, None), None], "x")
    assert snapshot(wide, end)[1] == (2, None, None, "y")


@pytest.mark.checklist(47)
def test_a_pending_instant_holds_the_frontier_back(people: Table) -> None:
    start = people.upsert((1, "a", "m1"))
    people.upsert((2, "b", "m1"))
    end = people.upsert((3, "c", "m1"))
    pending = people.timeline.data_commits[1].instant
    folder = Path(people.uri) / ".hoodie/timeline"
    finished = folder / f"{pending.frontier}.commit"
    content = finished.read_bytes()
    finished.unlink()
    assert people.timeline.pending == (pending.requested,)
    assert people.frontier() == start
    finished.write_bytes(content)
    assert people.frontier() == end


@pytest.mark.release
def test_a_rolled_back_commit_that_was_consumed_is_reported_lost(people: Table, spark: SparkSession) -> None:
    start = people.upsert((1, "a", "m1"))
    consumed = people.upsert((1, "A", "m1"), (2, "b", "m1"))
    spark.sql(f"create table people_rolled using hudi location '{people.uri}'")
    instant = consumed.split("_")[0]
    spark.sql(f"call rollback_to_instant(table => 'people_rolled', instant_time => '{instant}')").collect()
    spark.sql("drop table people_rolled")
    assert people.frontier() == start
    assert LakeHistory().unreadable_reason(people.uri, start, start) is None
    assert "no longer on the timeline" in (LakeHistory().unreadable_reason(people.uri, consumed, start) or "")
    assert snapshot(people, start) == [(1, "a", "m1")]
    end = people.upsert((3, "c", "m1"))
    assert changed(people, start, end) == [(1, 3, "c", "m1")]


def test_a_key_that_moves_partition_leaves_one_and_enters_the_other(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m2"))
    end = people.upsert((1, "a", "m2"), delete=[(1, "a", "m1")])
    assert changed(people, start, end) == [(-1, 1, "a", "m1"), (1, 1, "a", "m2")]
    keys = {row["_sml_key"] for row in people.feed().changes(start, end).collect()}
    assert len(keys) == 2


def test_cleaned_slices_are_lost_and_never_silently_nothing(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m2"))
    middle = people.upsert((1, "A", "m1"))
    end = people.upsert((1, "AA", "m1"), **CLEAN_OLD_VERSIONS)
    lost = LakeHistory().unreadable_reason
    assert "cleaned" in (lost(people.uri, start, end) or "")
    assert "cleaned" in (lost(people.uri, middle, end) or "")
    assert lost(people.uri, end, end) is None
    assert snapshot(people, end) == [(1, "AA", "m1"), (2, "b", "m2")]


@pytest.mark.release
def test_archived_commits_leave_a_right_snapshot_and_lost_ranges(lake: Lake) -> None:
    table = lake.source("archived", "id int, n int, p string", partition="p")
    first = table.write((1, 10, "x"), (2, 20, "y"))
    wide = lake.source("archived", "id int, n bigint, p string, extra string", partition="p")
    wide.write((3, 2**40, "z", "e"))
    wide.write((2, 21, "y", "f"), operation="insert_overwrite")
    frontiers = [wide.upsert((1, number, "x", None)) for number in range(4)]
    end = wide.upsert((1, 5, "x", None), **archiving(2))
    assert "no longer on the timeline" in (LakeHistory().unreadable_reason(wide.uri, first, end) or "")
    assert LakeHistory().unreadable_reason(wide.uri, frontiers[-1], end) is None
    assert snapshot(wide, end) == [(1, 5, "x", None), (2, 21, "y", "f"), (3, 2**40, "z", "e")]
    assert changed(wide, frontiers[-1], end) == [(-1, 1, 3, "x", None), (1, 1, 5, "x", None)]


@pytest.mark.release
def test_a_slice_of_an_archived_commit_that_was_cleaned_is_lost(lake: Lake) -> None:
    """The old slice is on no timeline any more: without a look at what the next write replaced it would seem never to
    have been, and rows deleted since would stay in every table derived from it."""
    table = lake.source("gone", "id int, n int, p string", partition="p")
    table.write((1, 10, "x"), (2, 20, "x"))
    for number in range(5):
        start = table.write((9, number, "other"))
    table.upsert(delete=[(1, 10, "x")])
    end = table.write((9, 9, "other"), **{**archiving(4), **CLEAN_OLD_VERSIONS})
    history = LakeHistory()
    assert table.timeline.holds(start), "the frontier itself is still there"
    assert "cleaned" in (history.unreadable_reason(table.uri, start, end) or "")


def test_rows_inserted_beside_rows_of_the_same_key_take_nothing_away(lake: Lake) -> None:
    """Plain inserts may repeat a key: the row that was there stays there."""
    table = lake.source("dup", "id int, name string")
    options = {"hoodie.index.type": "SIMPLE", "hoodie.merge.allow.duplicate.on.inserts": "true"}
    frame = lake.spark.createDataFrame([(1, "a")], table.columns)
    hudi_table.write(frame, table.layout, "insert", {}, options)  # type: ignore[arg-type]
    start = table.frontier()
    hudi_table.write(lake.spark.createDataFrame([(1, "b")], table.columns), table.layout, "insert", {}, options)  # type: ignore[arg-type]
    end = table.frontier()
    assert snapshot(table, end) == [(1, "a"), (1, "b")]
    assert changed(table, start, end) == [(1, 1, "b")]


@pytest.mark.release
@pytest.mark.checklist(46)
def test_a_table_of_plain_hudi_defaults_is_followed(lake: Lake) -> None:
    uri = str(lake.root / "plain")
    options = {
        "hoodie.table.name": "plain",
        "hoodie.datasource.write.recordkey.field": "shop,id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "region,day",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }

    def commit(*rows: tuple[object, ...], operation: str = "upsert") -> str:
        frame = lake.spark.createDataFrame(rows, "shop string, id int, ts bigint, region string, day date, v int")
        writer = frame.write.format("hudi").options(**options)
        writer.option("hoodie.datasource.write.operation", operation).mode("append").save(uri)
        frontier = Timeline(uri).frontier
        assert frontier is not None
        return frontier

    day = date(2024, 1, 2)
    start = commit(("s", 1, 1, "eu", day, 10), ("s", 2, 1, "us", day, 20), ("s", 3, 5, "us", day, 30))
    middle = commit(("s", 1, 2, "eu", day, 11), ("s", 3, 4, "us", day, 31))  # the second is late and loses
    end = commit(("s", 2, 9, "us", day, 20), operation="delete")
    feed = CopyOnWriteFeed(lake.spark, Timeline(uri))
    assert signed(feed.changes(start, middle)) == [(-1, "s", 1, 1, "eu", day, 10), (1, "s", 1, 2, "eu", day, 11)]
    assert signed(feed.changes(middle, end)) == [(-1, "s", 2, 1, "us", day, 20)]
    assert ordered(feed.current(end).drop("_sml_key")) == [("s", 1, 2, "eu", day, 11), ("s", 3, 5, "us", day, 30)]
