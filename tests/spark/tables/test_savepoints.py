"""Savepoints, restores and gaps of timelines on real tables: what is written without a JVM is what Hudi reads."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import FAULT_VARIABLE
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.recovery.savepoints import create_savepoint, delete_savepoint, savepoints
from sqlmesh_like.hudi.recovery.undo import undo
from sqlmesh_like.hudi.time_travel import state_at
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.spark.lake import COMPACT, Lake, Table, archiving, ordered
from tests.unit.hudi.test_undo import CHILD, REPOSITORY

TableType = Literal["cow", "mor"]


def call(table: Table, procedure: str, **arguments: str) -> list[tuple[object, ...]]:
    given = ", ".join(f"{name} => '{value}'" for name, value in {"path": table.uri, **arguments}.items())
    return [tuple(row) for row in table.lake.spark.sql(f"call {procedure}({given})").collect()]


def rows(table: Table, uri: str | None = None) -> list[tuple[object, ...]]:
    return ordered(table.lake.spark.read.format("hudi").load(uri or table.uri).select("id", "v", "p"))


def partitioned(lake: Lake, name: str, table_type: TableType = "cow") -> Table:
    return lake.source(name, "id int, v int, p string", partition="p", table_type=table_type)


@pytest.mark.release
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_hudi_reads_our_savepoint_and_returns_to_it(lake: Lake, table_type: TableType) -> None:
    table = partitioned(lake, "t", table_type)
    table.upsert((1, 1, "x"), (2, 2, "y"))
    frontier = table.upsert((1, 3, "x"))
    instant, before = frontier.split("_")[0], rows(table)
    call(table, "create_savepoint", commit_time=instant, user="me", comments="kept")
    (theirs,) = savepoints(table.timeline)
    delete_savepoint(table.timeline, instant)
    assert call(table, "show_savepoints") == []
    ours = create_savepoint(table.timeline, frontier, "me", "kept")
    assert (ours.instant, ours.user, ours.comment) == (instant, "me", "kept")
    assert {at: sorted(files) for at, files in ours.files.items()} == {at: sorted(f) for at, f in theirs.files.items()}
    assert call(table, "show_savepoints") == [(instant,)]
    table.upsert((1, 4, "x"), (3, 3, "z"))
    call(table, "rollback_to_savepoint", instant_time=instant)
    assert rows(table) == before and table.frontier() == frontier
    call(table, "delete_savepoint", instant_time=instant)
    assert savepoints(table.timeline) == ()


@pytest.mark.release
def test_cleaning_keeps_the_files_of_a_savepoint_until_it_is_deleted(lake: Lake, tmp_path: Path) -> None:
    table = partitioned(lake, "t")
    table.upsert((1, 1, "x"), (2, 2, "y"))
    frontier = table.upsert((1, 3, "x"))
    before = rows(table)
    saved = create_savepoint(table.timeline, frontier, "me", "")
    kept = {f"p={p}/{name}" for p in "xy" for name in saved.files[f"p={p}"]}
    for number in range(8):
        table.upsert((1, number, "x"), (2, number, "y"))
    history = LakeHistory()
    assert history.exceeds(table.uri, 3)
    clean_history(lake.spark, table.uri, retain=3)
    assert kept <= table.timeline.data_files and len(table.timeline.data_files) < 2 * 10
    # The archiver leaves the commits since the savepoint where they are: they do not make another cleaning due.
    assert len(table.timeline.commit_instants) > 8 and not history.exceeds(table.uri, 3)
    assert state_at(history.state(table.uri), frontier).frontier == frontier

    copy = str(tmp_path / "copy")
    shutil.copytree(table.uri, copy)
    undo(Timeline(copy), frontier)
    assert rows(table, copy) == before

    delete_savepoint(table.timeline, saved.instant)
    for number in range(4):
        table.upsert((1, number, "x"), (2, number, "y"))
    assert history.exceeds(table.uri, 3)
    clean_history(lake.spark, table.uri, retain=3)
    assert not kept & table.timeline.data_files


def returned(table: Table, frontier: str, copy: Path) -> list[tuple[object, ...]]:
    """The rows of a copy of the table that was brought back to a frontier, by Hudi's reader and by ours."""
    shutil.copytree(table.uri, copy)
    undo(Timeline(str(copy)), frontier)
    assert Timeline(str(copy)).frontier == frontier
    shown = rows(table, str(copy))
    assert ordered(change_feed(table.lake.spark, Timeline(str(copy))).current(frontier).select("id", "v", "p")) == shown
    return shown


def grown(table: Table) -> dict[str, list[tuple[object, ...]]]:
    """The rows at each frontier of commits with inserts, updates and deletes, and a compaction after the third."""
    known = {}
    for number in range(5):
        delete = [(2, 0, "y")] if number == 3 else []
        changed = [(1, number, "x"), (10 + number, number, "y"), *([(2, number, "y")] if number != 3 else [])]
        frontier = table.upsert(*changed, delete=delete, **(COMPACT if number == 2 else {}))
        known[frontier] = rows(table)
    return known


@pytest.mark.release
def test_a_merge_on_read_table_returns_to_each_of_its_commits(lake: Lake, tmp_path: Path) -> None:
    table = partitioned(lake, "t", "mor")
    known = grown(table)
    assert len(table.timeline.compactions) == 1
    lake.compaction(table.uri, "schedule")
    for number, (frontier, before) in enumerate(known.items()):
        assert returned(table, frontier, tmp_path / f"copy{number}") == before, number
    second = list(known)[1]
    undo(table.timeline, second)
    table.upsert((1, 100, "x"), (2, 100, "y"), **COMPACT)
    expected = [row for row in known[second] if row[0] not in (1, 2)]
    assert rows(table) == sorted([*expected, (1, 100, "x"), (2, 100, "y")], key=repr)


@pytest.mark.release
@pytest.mark.parametrize(("step", "stands"), [("rollback.in_flight", 3), ("rollback.in_flight:3", 2)])
@pytest.mark.fault("a rollback is killed, then Hudi writes", ends="recovers")
def test_a_rollback_that_was_killed_is_no_hindrance_to_hudis_writer(lake: Lake, step: str, stands: int) -> None:
    """The second time the third instant from the end is in flight again: the compaction."""
    table = partitioned(lake, "t", "mor")
    known = grown(table)
    frontiers = list(known)
    environment = {**os.environ, FAULT_VARIABLE: step, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", CHILD, table.uri, frontiers[0]]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    standing = frontiers[stands]
    assert table.frontier() == standing and rows(table) == known[standing]
    table.upsert((1, 100, "x"))
    expected = [row for row in known[standing] if row[0] != 1]
    assert rows(table) == sorted([*expected, (1, 100, "x")], key=repr)
    undone = {frontier.split("_")[0] for frontier in frontiers[stands + 1 :]}
    assert not [path for path in table.timeline.folder.files() if any(f"_{at}.log" in path for at in undone)]


@pytest.mark.release
def test_cleaning_keeps_the_log_files_of_a_savepoint(lake: Lake, tmp_path: Path) -> None:
    table = partitioned(lake, "t", "mor")
    table.upsert((1, 1, "x"), (2, 2, "y"))
    frontier = table.upsert((1, 3, "x"))
    before = rows(table)
    saved = create_savepoint(table.timeline, frontier, "me", "")
    kept = {f"{at}/{name}" for at, names in saved.files.items() for name in names}
    assert any(".log." in path for path in kept)
    for number in range(8):
        table.upsert((1, number, "x"), (2, number, "y"), **(COMPACT if number % 3 == 0 else {}))
    unsaved = {path for path in table.timeline.folder.files() if ".log." in path} - kept
    clean_history(lake.spark, table.uri, retain=3)
    files = set(table.timeline.folder.files())
    assert kept <= files and not unsaved <= files
    assert returned(table, frontier, tmp_path / "copy") == before


@pytest.mark.release
@pytest.mark.fault("another tool archives commits after a savepoint", ends="refuses")
def test_a_table_is_refused_while_hudi_hides_files_of_commits_that_were_archived_after_a_savepoint(lake: Lake) -> None:
    table = partitioned(lake, "t")
    options = {**archiving(2), "hoodie__archive__beyond__savepoint": "true"}
    table.upsert((1, 1, "x"), (2, 2, "y"))
    frontier = table.upsert((1, 3, "x"))
    call(table, "create_savepoint", commit_time=frontier.split("_")[0])
    table.upsert((2, 9, "y"))
    for number in range(8):
        table.upsert((1, number, "x"), **options)
    assert [instant.frontier for instant in table.timeline.before_gap] == [frontier]
    assert not table.timeline.holds(frontier)
    newest = {Path(each.path).name for each in table.timeline.slices(table.frontier()).values()}
    assert rows(table) == [(1, 7, "x"), (2, 2, "y")] and newest != read_files(table)
    with pytest.raises(NodeError, match="Hudi's readers do not see the file"):
        LakeHistory().state(table.uri)
    table.upsert((2, 5, "y"))
    state = LakeHistory().state(table.uri)
    assert state.frontier == table.frontier() and rows(table) == [(1, 7, "x"), (2, 5, "y")]
    assert {Path(each.path).name for each in table.timeline.slices(table.frontier()).values()} == read_files(table)


def read_files(table: Table) -> set[str]:
    """Names of the files that Hudi's reader reads."""
    frame = table.lake.spark.read.format("hudi").load(table.uri)
    return {row[0] for row in frame.select("_hoodie_file_name").collect()}


@pytest.mark.release
@pytest.mark.parametrize("table_type", ["cow", "mor"])
@pytest.mark.fault("Hudi's restore to a savepoint is killed", ends="refuses")
def test_an_interrupted_restore_is_completed_by_a_rollback(lake: Lake, table_type: TableType) -> None:
    table = partitioned(lake, "t", table_type)
    frontier = table.upsert((1, 1, "x"))
    before, instant = rows(table), frontier.split("_")[0]
    call(table, "create_savepoint", commit_time=instant)
    table.upsert((1, 2, "x"))
    call(table, "rollback_to_savepoint", instant_time=instant)
    folder = Path(table.uri) / ".hoodie" / "timeline"
    for path in [*folder.glob("*_*.restore"), *folder.glob(".*_*.restore.crc")]:
        path.unlink()
    with pytest.raises(NodeError, match="did not complete") as refused:
        table.upsert((1, 3, "x"))
    assert f"--to {instant} --yes" in str(refused.value)
    undo(table.timeline, frontier)
    assert rows(table) == before
    table.upsert((1, 3, "x"))
    assert rows(table) == [(1, 3, "x")]
