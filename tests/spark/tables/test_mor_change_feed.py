"""The change feed of merge-on-read tables: Hudi's reader shows snapshots, the timeline says which ones to read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from tests.spark.lake import CLEAN_OLD_VERSIONS, COMPACT, Lake, Table, archiving, ordered, signed

PEOPLE = "id int, name string, ym string"


def changed(table: Table, start: str, end: str) -> list[tuple[object, ...]]:
    return signed(table.feed().changes(start, end))


def snapshot(table: Table, frontier: str) -> list[tuple[object, ...]]:
    return ordered(table.feed().current(frontier).drop("_sml_key"))


def operations(table: Table) -> list[str]:
    return [commit.operation for commit in table.timeline.commits]


def overtaken(table: Table, frontier: str, by: str) -> str:
    """Rewrite history so that a commit was completed after another one: its new frontier."""
    timeline = Path(table.uri) / ".hoodie/timeline"
    late = f"{frontier.split('_')[0]}_{int(by.split('_')[1]) + 1}"
    (timeline / f"{frontier}.deltacommit").rename(timeline / f"{late}.deltacommit")
    return late


@pytest.fixture
def people(lake: Lake) -> Table:
    return lake.source("people", PEOPLE, partition="ym", table_type="mor")


def test_changes_and_snapshots_through_log_files_compaction_and_overwrites(people: Table) -> None:
    first = people.upsert((1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2"))
    second = people.upsert((1, "A", "m1"), (4, "d", "m3"), delete=[(2, "b", "m1")])
    assert changed(people, first, second) == [
        (-1, 1, "a", "m1"), (-1, 2, "b", "m1"), (1, 1, "A", "m1"), (1, 4, "d", "m3"),
    ]  # fmt: skip
    same = people.upsert((1, "A", "m1"), delete=[(7, "never there", "m1")])
    assert changed(people, second, same) == []
    third = people.upsert((3, "C", "m2"), (2, "back", "m1"), **COMPACT)
    assert operations(people)[-1] == "COMPACT"
    assert people.frontier() == third, "a compaction is no data"
    # A move, in one commit after the compaction.
    fourth = people.upsert((3, "C", "m1"), delete=[(3, "C", "m2")])
    assert changed(people, third, fourth) == [(-1, 3, "C", "m2"), (1, 3, "C", "m1")]
    fifth = people.write((9, "i", "m1"), operation="insert_overwrite")
    assert changed(people, fourth, fifth) == [
        (-1, 1, "A", "m1"), (-1, 2, "back", "m1"), (-1, 3, "C", "m1"), (1, 9, "i", "m1"),
    ]  # fmt: skip
    last = people.write((4, "d", "m3"), operation="insert_overwrite_table")
    assert changed(people, fifth, last) == [(-1, 9, "i", "m1")]
    rows = {
        first: [(1, "a", "m1"), (2, "b", "m1"), (3, "c", "m2")],
        second: [(1, "A", "m1"), (3, "c", "m2"), (4, "d", "m3")],
        third: [(1, "A", "m1"), (2, "back", "m1"), (3, "C", "m2"), (4, "d", "m3")],
        fourth: [(1, "A", "m1"), (2, "back", "m1"), (3, "C", "m1"), (4, "d", "m3")],
        fifth: [(4, "d", "m3"), (9, "i", "m1")],
        last: [(4, "d", "m3")],
    }
    assert {frontier: snapshot(people, frontier) for frontier in rows} == rows
    assert changed(people, first, last) == [
        (-1, 1, "a", "m1"), (-1, 2, "b", "m1"), (-1, 3, "c", "m2"), (1, 4, "d", "m3"),
    ]  # fmt: skip
    assert LakeHistory().unreadable_reason(people.uri, first, last) is None


@pytest.mark.release
@pytest.mark.checklist(45)
def test_a_scheduled_compaction_holds_nothing_back_and_changes_nothing(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m2"))
    middle = people.upsert((1, "A", "m1"))
    instant = people.lake.compaction(people.uri, "schedule")
    assert people.frontier() == middle
    later = people.upsert((1, "AA", "m1"), (3, "c", "m1"))
    end = people.upsert((2, "B", "m2"), delete=[(3, "c", "m1")])
    assert people.frontier() == end
    pairs = [(start, middle), (middle, later), (later, end), (start, end)]
    before = [changed(people, *pair) for pair in pairs]
    assert before == [
        [(-1, 1, "a", "m1"), (1, 1, "A", "m1")],
        [(-1, 1, "A", "m1"), (1, 1, "AA", "m1"), (1, 3, "c", "m1")],
        [(-1, 2, "b", "m2"), (-1, 3, "c", "m1"), (1, 2, "B", "m2")],
        [(-1, 1, "a", "m1"), (-1, 2, "b", "m2"), (1, 1, "AA", "m1"), (1, 2, "B", "m2")],
    ]
    people.lake.compaction(people.uri, "run")
    assert instant in {commit.instant.requested for commit in people.timeline.commits}
    assert [changed(people, *pair) for pair in pairs] == before
    assert snapshot(people, middle) == [(1, "A", "m1"), (2, "b", "m2")]
    assert people.frontier() == end


def test_a_commit_requested_earlier_and_completed_later_changes_no_frontier_before_it(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"))
    slow = people.upsert((1, "A", "m1"))
    fast = people.upsert((2, "B", "m1"))
    timeline = Path(people.uri) / ".hoodie/timeline"
    content = (timeline / f"{slow}.deltacommit").read_bytes()
    (timeline / f"{slow}.deltacommit").unlink()
    assert people.frontier() == start
    assert snapshot(people, start) == [(1, "a", "m1"), (2, "b", "m1")]
    (timeline / f"{slow}.deltacommit").write_bytes(content)
    late = overtaken(people, slow, fast)
    assert people.frontier() == fast
    assert snapshot(people, start) == [(1, "a", "m1"), (2, "b", "m1")]
    assert changed(people, start, fast) == [
        (-1, 1, "a", "m1"), (-1, 2, "b", "m1"), (1, 1, "A", "m1"), (1, 2, "B", "m1"),
    ]  # fmt: skip
    assert changed(people, late, fast) == [(-1, 2, "b", "m1"), (1, 2, "B", "m1")]


def test_a_commit_that_a_compaction_overtook_is_seen(people: Table) -> None:
    """Its log file belongs to the slice of the compaction: a read as of the commit's own instant would lack it."""
    start = people.upsert((1, "a", "m1"), (2, "b", "m1"))
    slow = people.upsert((1, "A", "m1"))
    people.lake.compaction(people.uri, "schedule")
    end = people.upsert((2, "B", "m1"))
    late = overtaken(people, slow, end)
    assert snapshot(people, late) == [(1, "A", "m1"), (2, "b", "m1")]
    assert changed(people, start, late) == [(-1, 1, "a", "m1"), (1, 1, "A", "m1")]
    assert changed(people, late, end) == [(-1, 2, "b", "m1"), (1, 2, "B", "m1")]


@pytest.mark.release
def test_a_late_row_that_loses_is_no_change(lake: Lake) -> None:
    table = lake.source("ranked", "id int, v string, at int", table_type="mor", ordering=("at",))
    start = table.upsert((1, "a", 5), (2, "b", 5))
    end = table.upsert((1, "late", 4), (2, "new", 6), (3, "c", 1))
    assert changed(table, start, end) == [(-1, 2, "b", 5), (1, 2, "new", 6), (1, 3, "c", 1)]
    last = table.upsert((2, "late", 5), delete=[(1, "late delete", 3), (3, "c", 2)], **COMPACT)
    assert changed(table, end, last) == [(-1, 3, "c", 1)]
    assert snapshot(table, last) == [(1, "a", 5), (2, "new", 6)]


@pytest.mark.release
def test_values_of_every_type_come_back_as_written(lake: Lake) -> None:
    columns = (
        "id int, d38 decimal(38,10), at timestamp, day date, text string, flags boolean, small smallint, tiny tinyint, "
        "big bigint, f float, g double, raw binary, tags array<string>, s struct<a:int,b:array<struct<c:date>>>"
    )
    table = lake.source("typed", columns, table_type="mor")
    one = (
        1, Decimal("1234567890123456789012345678.0123456789"), datetime(1959, 12, 31, 23, 59, 59, 123457),
        date(1581, 1, 2), "ü\u0000 \n'\"\\ 漢字 🦆", True, -3, 7, 2**62, 0.5, -0.1, bytearray(b"\x00\xff"),
        ["x", None, ""], (None, [(date(1969, 12, 31),), None]),
    )  # fmt: skip
    nulls = (2, *[None] * 13)
    start = table.write(one, nulls)
    assert snapshot(table, start) == [one, nulls]
    end = table.write((1, *nulls[1:]), (2, *one[1:]))
    assert snapshot(table, end) == [(1, *nulls[1:]), (2, *one[1:])]
    kinds = {name: kind for name, kind in table.feed().current(end).dtypes if name in ("day", "at", "d38", "raw")}
    assert kinds == {"d38": "decimal(38,10)", "at": "timestamp", "day": "date", "raw": "binary"}
    assert len(changed(table, start, end)) == 4


@pytest.mark.release
def test_an_input_widened_between_two_frontiers_is_read_right(lake: Lake) -> None:
    narrow = lake.source(
        "w", "id int, n int, d decimal(10,2), f float, s struct<a:int>, p string", partition="p", table_type="mor"
    )
    start = narrow.write((1, 5, Decimal("1.50"), 0.1, (1,), "x"), (2, 2**31 - 1, None, None, None, "y"))
    narrow.write((1, 6, Decimal("1.50"), 0.1, (1,), "x"))
    columns = "id int, n bigint, d decimal(14,2), f double, s struct<a:int,b:string>, p string, extra string"
    wide = lake.source("w", columns, partition="p", table_type="mor")
    new = (1, 2**40, Decimal("999999999999.99"), 0.5, (1, "b"), "x", "new")
    end = wide.write(new, (3, 7, Decimal("2.00"), 0.1, None, "z", None))
    assert changed(wide, start, end) == [
        (-1, 1, 5, Decimal("1.50"), 0.1, (1, None), "x", None),
        (1, *new),
        (1, 3, 7, Decimal("2.00"), 0.1, None, "z", None),
    ]
    assert snapshot(wide, end)[1] == (2, 2**31 - 1, None, None, None, "y", None)
    assert snapshot(wide, start)[0][:3] == (1, 5, Decimal("1.50"))


@pytest.mark.release
def test_cleaned_slices_are_lost_and_never_silently_nothing(people: Table) -> None:
    """Hudi's reader shows fewer rows of such a past, and no error."""
    start = people.upsert((1, "a", "m1"), (2, "b", "m2"))
    middle = people.upsert((1, "A", "m1"), **COMPACT)
    other = people.upsert((1, "AA", "m1"), **COMPACT)
    end = people.upsert((2, "B", "m2"), **CLEAN_OLD_VERSIONS)
    history = LakeHistory()
    assert "cleaned" in (history.unreadable_reason(people.uri, start, end) or "")
    assert "cleaned" in (history.unreadable_reason(people.uri, middle, end) or "")
    with pytest.raises(RetryableError, match="cleaned"):
        people.feed().changes(start, end)
    # The compaction after `other` holds its rows, and is still there.
    assert history.unreadable_reason(people.uri, other, end) is None
    assert changed(people, other, end) == [(-1, 2, "b", "m2"), (1, 2, "B", "m2")]
    assert snapshot(people, end) == [(1, "AA", "m1"), (2, "B", "m2")]
    (gone,) = [path for path in Path(people.uri).glob("ym=m2/.*.log.*") if not path.name.endswith(".crc")]
    gone.unlink()
    assert "cleaned" in (history.unreadable_reason(people.uri, other, end) or "")


@pytest.mark.release
def test_a_slice_of_archived_commits_that_was_cleaned_is_lost(lake: Lake) -> None:
    table = lake.source("gone", "id int, n int, p string", partition="p", table_type="mor")
    table.write((1, 10, "x"), (2, 20, "x"))
    for number in range(5):
        start = table.write((9, number, "other"))
    table.upsert(delete=[(1, 10, "x")], **COMPACT)
    end = table.write((9, 9, "other"), **{**archiving(6), **CLEAN_OLD_VERSIONS})
    assert table.timeline.holds(start), "the frontier itself is still there"
    assert not table.timeline.holds(f"{table.timeline.commits[0].instant.requested}_1")
    assert "cleaned" in (LakeHistory().unreadable_reason(table.uri, start, end) or "")
    assert snapshot(table, end) == [(2, 20, "x"), (9, 9, "other")]


@pytest.mark.checklist(58)
def test_only_touched_partitions_are_read(people: Table) -> None:
    start = people.upsert((1, "a", "m1"), (2, "b", "m2"), (3, "c", "a b"))
    end = people.upsert((1, "A", "m1"))
    for path in Path(people.uri).glob("ym=m2/*.parquet"):
        path.write_bytes(b"poison")
    assert changed(people, start, end) == [(-1, 1, "a", "m1"), (1, 1, "A", "m1")]
    assert ordered(people.feed().current(end, {"ym=m1"}).drop("_sml_key")) == [(1, "A", "m1")]
    assert people.feed().current(end, set()).count() == 0
    with pytest.raises(Exception, match=r"poison|Parquet|parquet"):
        snapshot(people, end)


def test_null_empty_and_escaped_partition_values(lake: Lake) -> None:
    table = lake.source("odd", "id int, p string", partition="p", table_type="mor")
    start = table.upsert((1, None), (2, ""), (3, "ü%20"), (4, "a"))
    assert snapshot(table, start) == [(1, None), (2, ""), (3, "ü%20"), (4, "a")]
    end = table.upsert((5, None), (6, "x/y"), delete=[(3, "ü%20"), (2, "")])
    assert changed(table, start, end) == [(-1, 2, ""), (-1, 3, "ü%20"), (1, 5, None), (1, 6, "x/y")]


@pytest.mark.release
def test_a_timestamp_that_partitions_is_read_from_the_files_or_not_at_all(lake: Lake) -> None:
    """Hudi's reader shows NULL, from a path."""
    columns, moment = "id int, at timestamp, v int", datetime(2024, 1, 2, 3, 4, 5)
    table = lake.source("moments", columns, partition="at", table_type="mor")
    start = table.upsert((1, moment, 1))
    end = table.upsert((1, moment, 2))
    assert changed(table, start, end) == [(-1, 1, moment, 1), (1, 1, moment, 2)]
    ranked = lake.source("ranked_moments", columns, partition="at", table_type="mor", ordering=("v",))
    start = ranked.upsert((1, moment, 1))
    end = ranked.upsert((1, moment, 2))
    feed = ranked.feed()
    assert ordered(feed.changes(start, end).select("id", "v", "_sml_weight")) == [(1, 1, -1), (1, 2, 1)]
    with pytest.raises(Py4JJavaError, match=r"at of .*ranked_moments partitions a merge-on-read table"):
        feed.changes(start, end).collect()


@pytest.mark.release
def test_a_table_of_plain_hudi_defaults_that_sql_updates_is_followed(lake: Lake) -> None:
    """MERGE INTO, UPDATE, DELETE and DROP PARTITION, as another team writes them."""
    uri = str(lake.root / "plain")
    lake.spark.sql(
        "create table plain_mor (id int, v int, note string, region string) using hudi partitioned by (region) "
        f"tblproperties (type = 'mor', primaryKey = 'id', 'hoodie.metadata.enable' = 'false') location '{uri}'"
    )
    try:
        frontiers: list[str] = []

        def commit(statement: str) -> None:
            lake.spark.sql(statement)
            frontier = Timeline(uri).frontier
            assert frontier is not None
            frontiers.append(frontier)

        commit("insert into plain_mor values (1, 10, 'a', 'eu'), (2, 20, 'b', 'us'), (3, 30, 'c', 'us')")
        commit(
            "merge into plain_mor t using (select 1 as id, 11 as v, 'a' as note, 'eu' as region) s "
            "on t.id = s.id when matched then update set *"
        )
        commit("delete from plain_mor where id = 2")
        commit("update plain_mor set note = 'C' where id = 3")
        commit("alter table plain_mor drop partition (region = 'us')")
        feed = change_feed(lake.spark, Timeline(uri))
        steps = [signed(feed.changes(*pair)) for pair in pairwise(frontiers)]
        assert steps == [
            [(-1, 1, 10, "a", "eu"), (1, 1, 11, "a", "eu")],
            [(-1, 2, 20, "b", "us")],
            [(-1, 3, 30, "c", "us"), (1, 3, 30, "C", "us")],
            [(-1, 3, 30, "C", "us")],
        ]
        assert ordered(feed.current(frontiers[-1]).drop("_sml_key")) == [(1, 11, "a", "eu")]
    finally:
        lake.spark.sql("drop table plain_mor")


@pytest.mark.release
def test_merges_of_someone_elses_rules_are_compared_by_content(lake: Lake) -> None:
    """A payload that fills gaps may change a row and leave it the number it had."""
    uri = str(lake.root / "payload")
    options: Mapping[str, str] = {
        "hoodie.table.name": "payload",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "at",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        "hoodie.metadata.enable": "false",
    }
    frontiers = []
    for rows in ([(1, "a", None, 5), (2, "b", None, 5)], [(1, None, "late", 4), (2, None, "new", 6)]):
        frame = lake.spark.createDataFrame(rows, "id int, x string, y string, at int")
        frame.write.format("hudi").options(**options).mode("append").save(uri)
        frontiers.append(Timeline(uri).frontier or "")
    feed = change_feed(lake.spark, Timeline(uri))
    stored = ordered(lake.spark.read.format("hudi").load(uri).select("id", "x", "y", "at"))
    start = [(1, "a", None, 5), (2, "b", None, 5)]
    assert stored != start
    assert ordered(feed.current(frontiers[1]).drop("_sml_key")) == stored
    expected = [(-1, *row) for row in start if row not in stored] + [(1, *row) for row in stored if row not in start]
    assert signed(feed.changes(frontiers[0], frontiers[1])) == sorted(expected, key=repr)
