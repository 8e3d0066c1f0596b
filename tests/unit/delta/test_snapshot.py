"""Versions of rows, by the shipped program on DuckDB: what begins, what ends, and what stays as it was."""

from __future__ import annotations

import itertools
import random

import pytest

from sqlmesh_like.delta.snapshot import added_columns, snapshot_program
from sqlmesh_like.errors import Location, NodeError, ProjectError
from sqlmesh_like.names import Column
from sqlmesh_like.project.snapshots import SnapshotConfig, snapshot_config
from tests.levels import parametrize
from tests.snapshot_table import COLUMNS, Kept, day

PLACE = Location("snapshots/s.sql", 1, 1)


def config(**values: object) -> SnapshotConfig:
    return snapshot_config({"unique_key": "id", "strategy": "check", "check_cols": "all", **values}, PLACE, "s")


def by_time(**values: object) -> SnapshotConfig:
    return config(strategy="timestamp", updated_at="ts", check_cols=None, **values)


def test_a_changed_row_ends_one_version_and_begins_another() -> None:
    kept = Kept(config())
    kept.take(1, (1, "a", None), (2, "b", None))
    assert kept.take(2, (1, "a", None), (2, "c", None), (3, "d", None)) == 3
    assert kept.versions() == [(1, "a", 1, None), (2, "b", 1, 2), (2, "c", 2, None), (3, "d", 2, None)]
    assert kept.take(3, (1, "a", None), (2, "c", None), (3, "d", None)) == 0


def test_keys_whose_texts_would_run_together_are_rows_of_their_own() -> None:
    """dbt's `dbt_scd_id` is the same for both."""
    columns = (Column("id", "string"), Column("v", "string"), Column("ts", "timestamp"))
    kept = Kept(config(unique_key=["id", "v"], check_cols=["ts"]), columns)
    kept.take(1, ("a|b", "c", None), ("a", "b|c", None))
    assert kept.take(2, ("a|b", "c", day(1)), ("a", "b|c", day(1))) == 4
    versions = [("a", "b|c", 1, 2), ("a", "b|c", 2, None), ("a|b", "c", 1, 2), ("a|b", "c", 2, None)]
    assert kept.versions() == versions
    ids = kept.db.execute("select count(distinct _sml_key), count(distinct dbt_scd_id) from kept").fetchall()
    assert ids == [(4, 2)]


def test_a_value_that_becomes_null_is_a_change_and_null_stays_null() -> None:
    kept = Kept(config(check_cols=["v"]))
    kept.take(1, (1, "a", None), (2, None, None))
    assert kept.take(2, (1, None, None), (2, None, day(1))) == 2
    assert kept.versions() == [(1, "a", 1, 2), (1, None, 2, None), (2, None, 1, None)]


def test_by_timestamp_a_version_begins_when_its_row_was_written_and_late_rows_change_nothing() -> None:
    kept = Kept(by_time())
    kept.take(5, (1, "a", day(1)), (2, "b", day(2)))
    assert kept.take(6, (1, "x", day(4)), (2, "late", day(1))) == 2
    assert kept.versions() == [(1, "a", 1, 4), (1, "x", 4, None), (2, "b", 2, None)]


@pytest.mark.parametrize("how", [config(), by_time()])
def test_deleted_rows_are_left_alone_unless_asked_for(how: SnapshotConfig) -> None:
    kept = Kept(how)
    kept.take(3, (1, "a", day(1)), (2, "b", day(1)))
    assert kept.take(4, (1, "a", day(1))) == 0


@pytest.mark.parametrize("make", [config, by_time])
def test_an_invalidated_row_ends_and_one_that_comes_back_starts_then(make: object) -> None:
    assert callable(make)
    kept = Kept(make(hard_deletes="invalidate"))
    kept.take(3, (1, "a", day(3)))
    assert kept.take(4) == 1
    assert kept.take(5) == 0
    assert kept.versions() == [(1, "a", 3, 4)]
    assert kept.take(6, (1, "a", day(3))) == 1
    starts = 6 if make is config else 4  # by timestamp: not before its end, though its time says so
    assert kept.versions() == [(1, "a", 3, 4), (1, "a", starts, None)]


def test_a_map_is_checked_by_its_entries_as_spark_compares_no_maps() -> None:
    columns = (Column("id", "int"), Column("m", "map<string,int>"))
    changes = snapshot_program(config(), columns, (*columns, *added_columns(config())), day(1)).changes
    assert "array_sort(map_entries(s.`m`)) <=> array_sort(map_entries(o.`m`))" in changes
    assert "s.`id` <=> o.`id`" in changes


def test_a_deletion_may_be_a_version_of_its_own() -> None:
    kept = Kept(config(hard_deletes="new_record"))
    kept.take(1, (1, "a", None))
    assert kept.take(2) == 2
    assert kept.take(3) == 0
    assert kept.versions("dbt_is_deleted") == [(1, "a", 1, 2, "False"), (1, "a", 2, None, "True")]
    assert kept.take(4, (1, "a", None)) == 2
    assert kept.versions("dbt_is_deleted") == [
        (1, "a", 1, 2, "False"), (1, "a", 2, 4, "True"), (1, "a", 4, None, "False"),
    ]  # fmt: skip


def test_by_timestamp_a_row_that_comes_back_with_its_old_time_was_deleted_until_then() -> None:
    """A row restored from a backup: its version would begin with its deletion, and be written over it."""
    kept = Kept(by_time(hard_deletes="new_record"))
    kept.take(3, (1, "a", day(1)), (2, "b", day(1)))
    assert kept.take(4) == 4
    assert kept.take(6, (1, "a", day(1)), (2, "b", day(5))) == 4
    assert kept.take(7, (1, "a", day(1)), (2, "b", day(5))) == 0
    assert kept.versions("dbt_is_deleted") == [
        (1, "a", 1, 4, "False"), (1, "a", 4, 6, "True"), (1, "a", 6, None, "False"),
        (2, "b", 1, 4, "False"), (2, "b", 4, 5, "True"), (2, "b", 5, None, "False"),
    ]  # fmt: skip


def test_what_is_valid_may_have_a_date_and_columns_other_names() -> None:
    names = {"dbt_valid_to": "until", "dbt_valid_from": "since"}
    kept = Kept(config(dbt_valid_to_current="timestamp '9999-12-31'", snapshot_meta_column_names=names))
    kept.take(1, (1, "a", None))
    kept.take(2, (1, "b", None))
    rows = kept.db.execute("select v, day(since), year(until) from kept order by 1").fetchall()
    assert rows == [("a", 1, 2024), ("b", 2, 9999)]


def test_columns_that_come_and_go_are_null_where_they_were_not() -> None:
    kept = Kept(config())
    kept.take(1, (1, "a", None))
    more = (Column("id", "int"), Column("ts", "timestamp"), Column("w", "int"))
    assert kept.take(2, (1, None, 7), columns=more) == 2
    assert kept.db.execute("select v, w from kept order by dbt_valid_from").fetchall() == [("a", None), (None, 7)]


def test_keys_of_several_columns_are_told_apart() -> None:
    kept = Kept(config(unique_key=["id", "v"]))
    assert kept.take(1, (1, "a", None), (1, "b", None)) == 2
    assert kept.take(2, (1, "a", None), (1, "b", day(1))) == 2


@pytest.mark.parametrize("hard_deletes", ["ignore", "invalidate", "new_record"])
def test_a_key_may_be_computed(hard_deletes: str) -> None:
    """dbt's own suite has such a key; its rows are those of a key of the columns that it reads."""
    computed = Kept(config(unique_key="id || '-' || v", check_cols=["ts"], hard_deletes=hard_deletes))
    plain = Kept(config(unique_key=["id", "v"], check_cols=["ts"], hard_deletes=hard_deletes))
    for kept in (computed, plain):
        kept.take(1, (1, "a", None), (1, "b", None), (2, "a", None))
        kept.take(2, (1, "a", day(1)), (1, "b", None))
        kept.take(3, (1, "a", day(1)), (1, "b", None), (2, "a", day(2)))
    assert computed.versions() == plain.versions() and len(plain.versions()) > 3
    assert not [name for name in computed.db.sql("from kept").columns if name.startswith("_sml_unique")]


@pytest.mark.parametrize("key", ["id || nope", "id as x", "(select 1)", "id,", "`id` || v"])
def test_a_key_that_cannot_be_computed_is_refused(key: str) -> None:
    with pytest.raises(NodeError, match="which is not a column of its query"):
        Kept(config(unique_key=key)).take(1, (1, "a", None))


def test_a_check_may_take_its_time_from_a_column() -> None:
    kept = Kept(config(updated_at="ts", check_cols=["v"]))
    kept.take(5, (1, "a", day(1)), (2, "b", day(2)))
    assert kept.take(6, (1, "x", day(4)), (2, "b", day(5))) == 2
    assert kept.versions() == [(1, "a", 1, 4), (1, "x", 4, None), (2, "b", 2, None)]


def test_a_new_column_among_those_that_are_checked_makes_every_row_another_version() -> None:
    more = (*COLUMNS, Column("w", "int"))
    kept, other = Kept(config()), Kept(config(check_cols=["v"]))
    for table in (kept, other):
        table.take(1, (1, "a", None))
    assert (kept.take(2, (1, "a", None, None), columns=more), other.take(2, (1, "a", None, None), columns=more)) == (
        2,
        0,
    )
    assert kept.take(3, (1, "a", None, None)) == 0


@pytest.mark.parametrize("values", [{"check_cols": ["w"]}, {"updated_at": "w"}, {"unique_key": "w"}])
def test_a_column_that_is_not_there_is_refused_whenever_it_is_found_out(values: dict[str, object]) -> None:
    with pytest.raises(NodeError, match="names 'w', which is not a column"):
        Kept(config(**values)).take(1, (1, "a", None))


@parametrize("seed", suite=range(2), release=range(2, 20))
def test_versions_of_a_key_never_overlap_and_the_open_ones_are_the_query(seed: int) -> None:
    """Any history of inserts, updates, deletes and returns; with deletions followed, what is valid is the query."""
    draw = random.Random(seed)
    deletes = draw.choice(["invalidate", "new_record"])
    kept = Kept(config(hard_deletes=deletes))
    rows: dict[int, str | None] = {}
    for today in range(1, 12):
        for key in range(4):
            if draw.random() < 0.4:
                rows[key] = draw.choice(["a", "b", None])
            elif draw.random() < 0.2:
                rows.pop(key, None)
        kept.take(today, *[(key, value, None) for key, value in rows.items()])
        shown = kept.versions(*_deleted(deletes))
        valid = {row[0]: row[1] for row in shown if row[3] is None and "True" not in row[4:]}
        assert valid == rows
        for one, other in itertools.pairwise(shown):
            assert one[0] != other[0] or (one[3] is not None and one[3] <= other[2] and one[2] < one[3])


def _deleted(deletes: str) -> tuple[str, ...]:
    return ("dbt_is_deleted",) if deletes == "new_record" else ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"strategy": None}, "it has no strategy"),
        ({"strategy": "timestmp"}, "unknown strategy 'timestmp'"),
        ({"unique_key": None}, "it has no unique_key"),
        ({"strategy": "timestamp"}, "needs updated_at"),
        ({"check_cols": None}, "needs check_cols"),
        ({"hard_deletes": "drop"}, "unknown hard_deletes 'drop'"),
    ],
)
def test_a_wrong_config_is_refused_at_its_place(values: dict[str, object], message: str) -> None:
    with pytest.raises(ProjectError, match=message) as caught:
        config(**values)
    assert caught.value.location == PLACE
