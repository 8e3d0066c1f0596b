"""Savepoints written and read without a JVM: what they keep, and what is refused."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pytest

from sqlmesh_like.errors import NodeError, UnreadableTableError
from sqlmesh_like.hudi.recovery.savepoints import create_savepoint, delete_savepoint, savepoints
from sqlmesh_like.hudi.recovery.undo import undo
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from tests.faults.shop import ORDERS, Shop
from tests.written_table import WrittenTable


@pytest.fixture
def table(tmp_path: Path) -> WrittenTable:
    """Three commits to two partitions; the last touches one of them."""
    table = WrittenTable(tmp_path / "t", {"p": "string", "v": "long"}, "p").create()
    table.upsert([("a", "x", 1), ("b", "y", 2)])
    table.upsert([("a", "x", 3)])
    return table


def names(table: WrittenTable) -> set[str]:
    return {name for name in table.timeline.names if "savepoint" in name}


def test_a_savepoint_names_the_files_that_readers_see_as_of_its_commit(table: WrittenTable) -> None:
    before = datetime.now(UTC)
    saved = create_savepoint(table.timeline, table.frontier, "me", "before the move")
    table.upsert([("b", "y", 4)])
    (read,) = savepoints(table.timeline)
    assert (read.instant, read.user, read.comment) == (saved.instant, "me", "before the move")
    assert 0 <= (read.created_at - before).total_seconds() + 0.001 < 600
    expected = {each.partition: (Path(each.path).name,) for each in table.timeline.slices(_of(table, 1)).values()}
    assert read.files == expected and sorted(expected) == ["p=x", "p=y"]
    assert table.timeline.savepointed == (saved.instant,)


def _of(table: WrittenTable, number: int) -> str:
    return table.timeline.data_commits[number + 1].instant.frontier


def test_its_files_on_the_timeline_are_those_of_hudi(table: WrittenTable) -> None:
    frontier = table.frontier
    instant = create_savepoint(table.timeline, frontier, "me", "").instant
    completed = next(name for name in names(table) if name.endswith(".savepoint"))
    assert names(table) == {f"{instant}.savepoint.inflight", completed}
    # It completes after every action that is there, as Hudi's readers require of instants.
    assert completed.split("_")[0] == instant and completed.split("_")[1].split(".")[0] > frontier.split("_")[1]
    folder = table.root / ".hoodie" / "timeline"
    assert (folder / f"{instant}.savepoint.inflight").stat().st_size == 0
    record = next(fastavro.reader(io.BytesIO((folder / completed).read_bytes())))
    assert isinstance(record, dict) and record["version"] == 1
    assert record["partitionMetadata"]["p=x"]["partitionPath"] == "p=x"
    assert not (table.root / ".hoodie" / ".sml_writer" / instant).exists()


def test_commits_go_on_without_spark(table: WrittenTable) -> None:
    create_savepoint(table.timeline, table.frontier, "me", "")
    assert unsupported_reason(table.timeline, table.ordering, table.partition, {}) is None
    table.upsert([("c", "x", 9)])
    assert sorted(row[0] for row in table.rows()) == ["a", "b", "c"]


def test_what_a_killed_creation_left_is_no_savepoint_and_no_hindrance(table: WrittenTable) -> None:
    instant = table.frontier.split("_")[0]
    (table.root / ".hoodie" / "timeline" / f"{instant}.savepoint.inflight").touch()
    (table.root / ".hoodie" / ".sml_writer" / instant).mkdir(parents=True)
    frontier = table.frontier
    assert savepoints(table.timeline) == () and not table.timeline.unfinished
    table.upsert([("c", "x", 9)])
    assert create_savepoint(table.timeline, frontier, "me", "").instant == instant
    assert len(savepoints(table.timeline)) == 1


def test_a_deleted_savepoint_leaves_nothing(table: WrittenTable) -> None:
    first, second = _of(table, 0), _of(table, 1)
    for frontier in (first, second):
        create_savepoint(table.timeline, frontier, "me", "")
    (table.root / ".hoodie" / "timeline" / f".{first.split('_')[0]}.savepoint.inflight.crc").touch()
    delete_savepoint(table.timeline, first.split("_")[0])
    assert table.timeline.savepointed == (second.split("_")[0],)
    assert all(name.startswith(second.split("_")[0]) for name in names(table)) and len(names(table)) == 2
    assert table.timeline.frontier == second
    with pytest.raises(NodeError, match="has no savepoint"):
        delete_savepoint(table.timeline, first.split("_")[0])


def test_a_second_savepoint_of_a_commit_is_refused(table: WrittenTable) -> None:
    create_savepoint(table.timeline, table.frontier, "me", "")
    with pytest.raises(NodeError, match="already"):
        create_savepoint(table.timeline, table.frontier, "me", "")


def test_a_commit_whose_files_are_gone_is_refused(table: WrittenTable) -> None:
    first = _of(table, 0)
    gone = next(each.path for each in table.timeline.slices(first).values() if each.partition == "p=x")
    (table.root / gone).unlink()
    with pytest.raises(NodeError, match="are gone"):
        create_savepoint(table.timeline, first, "me", "")
    assert not names(table)


def test_a_table_whose_restore_was_interrupted_is_refused(table: WrittenTable) -> None:
    (table.root / ".hoodie" / "timeline" / "20990101000000000.restore.inflight").touch()
    with pytest.raises(NodeError, match="did not complete"):
        create_savepoint(table.timeline, table.frontier, "me", "")


@pytest.mark.parametrize("content", [b"", b"Obj", b"{}"])
def test_an_unreadable_savepoint_is_named(table: WrittenTable, content: bytes) -> None:
    frontier = table.frontier
    (table.root / ".hoodie" / "timeline" / f"{frontier}.savepoint").write_bytes(content)
    with pytest.raises(UnreadableTableError, match=rf"{frontier}\.savepoint"):
        savepoints(table.timeline)


def test_a_table_returns_to_its_savepoint(tmp_path: Path) -> None:
    shop, dice = Shop.of_inputs(tmp_path), random.Random(7)
    shop.commit(ORDERS, dice)
    frontier = shop.timeline(ORDERS).frontier
    assert frontier is not None
    saved = create_savepoint(shop.timeline(ORDERS), frontier, "me", "")
    for _ in range(2):
        shop.commit(ORDERS, dice)
    undo(shop.timeline(ORDERS), frontier)
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, frontier]
    assert [each.instant for each in savepoints(shop.timeline(ORDERS))] == [saved.instant]
