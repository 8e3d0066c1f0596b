"""Commits taken off a table: its rows and files, what a kill in between leaves, and commits that cannot be read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import FAULT_VARIABLE
from sqlmesh_like.hudi.recovery.last_good_commit import table_health
from sqlmesh_like.hudi.recovery.undo import undo
from tests.faults.shop import ORDERS, Shop
from tests.levels import parametrize

REPOSITORY = Path(__file__).parents[3]
CHILD = """
import sys
from sqlmesh_like.hudi.recovery.undo import undo
from sqlmesh_like.hudi.timeline import Timeline
undo(Timeline(sys.argv[1]), sys.argv[2])
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Three commits to the orders, after the empty one that made them."""
    made, dice = Shop.of_inputs(tmp_path), random.Random(7)
    for _ in range(3):
        made.commit(ORDERS, dice)
    return made


def frontiers(shop: Shop) -> list[str]:
    return [commit.instant.frontier for commit in shop.timeline(ORDERS).data_commits]


def newest_file(shop: Shop) -> Path:
    timeline = shop.timeline(ORDERS)
    return Path(timeline.uri) / max(timeline.data_files, key=lambda path: path.rpartition("_")[2])


def test_a_table_goes_back_with_its_rows_and_files(shop: Shop) -> None:
    known = frontiers(shop)
    assert len(shop.timeline(ORDERS).data_files) == 3
    assert undo(shop.timeline(ORDERS), known[1]) == [frontier.split("_")[0] for frontier in (known[3], known[2])]
    assert frontiers(shop) == known[:2] and not shop.timeline(ORDERS).unfinished
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[1]]
    assert len(shop.timeline(ORDERS).data_files) == 1
    shop.commit(ORDERS, random.Random(8))
    assert shop.stored(ORDERS) == shop.recorded(ORDERS) and frontiers(shop)[:2] == known[:2]


@parametrize(
    ("step", "stands"),
    suite=[("rollback.marked", 3), ("hudi.removal.files", 2)],
    release=[("rollback.in_flight", 2), ("hudi.removal.inflight", 2), ("rollback.undone", 2)],
)
def test_killed_in_between_it_stands_at_a_commit_and_the_next_call_ends_it(step: str, stands: int, shop: Shop) -> None:
    known, uri = frontiers(shop), shop.timeline(ORDERS).uri
    environment = {**os.environ, FAULT_VARIABLE: step, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", CHILD, uri, known[1]]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert shop.timeline(ORDERS).frontier == known[stands]
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[stands]]
    undo(shop.timeline(ORDERS), known[1])
    assert frontiers(shop) == known[:2] and shop.stored(ORDERS) == shop.rows_at[ORDERS, known[1]]
    assert len(shop.timeline(ORDERS).data_files) == 1 and not shop.timeline(ORDERS).unfinished


def test_while_the_clock_is_set_back_no_commit_is_taken_for_one_that_was_removed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SetBack(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> SetBack:
            return cls(2020, 1, 1, tzinfo=tz)

    monkeypatch.setattr("sqlmesh_like.hudi.writer.instant.datetime", SetBack)
    shop.commit(ORDERS, random.Random(8))
    *known, removed = frontiers(shop)
    undo(shop.timeline(ORDERS), known[-1])
    shop.commit(ORDERS, random.Random(9))
    assert frontiers(shop)[:-1] == known and not shop.timeline(ORDERS).holds(removed)


def test_a_writer_that_comes_after_a_kill_goes_on_from_the_commit_that_stands(shop: Shop) -> None:
    known, uri = frontiers(shop), shop.timeline(ORDERS).uri
    environment = {**os.environ, FAULT_VARIABLE: "rollback.in_flight", "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-c", CHILD, uri, known[1]], env=environment, check=False)
    shop.commit(ORDERS, random.Random(8))
    assert frontiers(shop)[:3] == known[:3] and len(frontiers(shop)) == 4
    assert shop.stored(ORDERS) == shop.recorded(ORDERS)


def test_a_commit_whose_metadata_is_broken_is_taken_off(shop: Shop) -> None:
    known, uri = frontiers(shop), shop.timeline(ORDERS).uri
    (Path(uri) / ".hoodie" / "timeline" / f"{known[3]}.commit").write_bytes(b"Obj")
    health = table_health(uri)
    assert health.good == known[2] and known[3] in (health.problem or "")
    assert undo(shop.timeline(ORDERS), known[2]) == [known[3].split("_")[0]]
    assert table_health(uri).is_whole and shop.stored(ORDERS) == shop.rows_at[ORDERS, known[2]]


def test_a_cut_or_missing_file_is_seen_and_the_commit_before_is_whole(shop: Shop) -> None:
    known, uri, newest = frontiers(shop), shop.timeline(ORDERS).uri, newest_file(shop)
    assert table_health(uri).good == known[3] and table_health(uri).is_whole
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    health = table_health(uri)
    assert health.good == known[2] and newest.name in (health.problem or "")
    newest.unlink()
    health = table_health(uri)
    assert health.good == known[2] and f"{newest.name} is gone" in (health.problem or "")


def test_where_a_file_of_then_was_cleaned_nothing_is_taken_off(shop: Shop) -> None:
    known, timeline = frontiers(shop), shop.timeline(ORDERS)
    (Path(timeline.uri) / min(timeline.data_files, key=lambda path: path.rpartition("_")[2])).unlink()
    with pytest.raises(NodeError, match="are gone"):
        undo(shop.timeline(ORDERS), known[1])
    assert frontiers(shop) == known


def mark(shop: Shop, *names: str) -> None:
    for name in names:
        (Path(shop.timeline(ORDERS).uri) / ".hoodie" / "timeline" / name).touch()


def test_a_savepointed_commit_is_not_taken_off(shop: Shop) -> None:
    known = frontiers(shop)
    saved = known[2].split("_")[0]
    mark(shop, f"{saved}.savepoint.inflight", f"{known[2]}.savepoint")
    with pytest.raises(NodeError, match=f"has the savepoint {saved}, which is after {known[1]}") as refused:
        undo(shop.timeline(ORDERS), known[1])
    assert f"`sml savepoint delete TABLE {saved}`" in str(refused.value)
    assert frontiers(shop) == known
    # Back to the savepoint itself nothing is in the way, and it stays.
    assert undo(shop.timeline(ORDERS), known[2]) == [known[3].split("_")[0]]
    assert frontiers(shop) == known[:3] and shop.timeline(ORDERS).savepointed == (saved,)


@pytest.mark.parametrize("action", ["clean", "rollback", "restore"])
def test_an_interrupted_service_goes_with_the_commits_that_it_was_about(action: str, shop: Shop) -> None:
    known = frontiers(shop)
    later, done = (f"{int(known[3].split('_')[1]) + number}" for number in (1, 2))
    mark(shop, f"{later}.{action}.requested", f"{later}.{action}.inflight")
    mark(shop, f"{done}.{action}.requested", f"{done}.{action}.inflight", f"{done}_{done}.{action}")
    assert shop.timeline(ORDERS).unfinished == (later,)
    undo(shop.timeline(ORDERS), known[2])
    assert frontiers(shop) == known[:3] and not shop.timeline(ORDERS).unfinished
    assert f"{done}_{done}.{action}" in shop.timeline(ORDERS).names
