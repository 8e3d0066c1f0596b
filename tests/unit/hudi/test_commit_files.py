"""Merge-on-read tables brought back to a commit, and kept at one: which files go, which stay, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.fault_points import FAULT_VARIABLE
from sqlmesh_like.hudi.missing_files import missing_files
from sqlmesh_like.hudi.recovery.last_good_commit import table_health
from sqlmesh_like.hudi.recovery.savepoints import create_savepoint
from sqlmesh_like.hudi.recovery.undo import undo
from tests.unit.hudi import test_timeline
from tests.unit.hudi.test_missing_files import Lake, at, base, log
from tests.unit.hudi.test_undo import CHILD, REPOSITORY


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A base file, two log files, a compaction and a log file since, each of a commit of its own."""
    made = Lake(tmp_path / "t")
    made.commit(1, base(1))
    for number in (3, 5):
        made.commit(number, log(number))
    made.commit(7, base(7), operation="COMPACT")
    made.mark(f"{at(7)}.compaction.inflight")
    made.commit(9, log(9))
    (made.root / "p=1" / f".{log(9)}.crc").touch()
    return made


def frontiers(lake: Lake) -> list[str]:
    return [commit.instant.frontier for commit in lake.timeline.data_commits]


def files(lake: Lake) -> set[str]:
    return {path.name for path in (lake.root / "p=1").iterdir()}


def test_log_files_of_later_commits_and_a_compaction_are_removed(lake: Lake) -> None:
    known = frontiers(lake)
    assert undo(lake.timeline, known[1]) == [at(9), at(7), at(5)]
    assert files(lake) == {base(1), log(3)}
    assert frontiers(lake) == known[:2] and not lake.timeline.unfinished and not lake.timeline.compactions


def test_the_compaction_stays_where_only_commits_after_it_are_removed(lake: Lake) -> None:
    known = frontiers(lake)
    lake.commit(11, log(11))
    undo(lake.timeline, known[3])
    assert files(lake) == {base(1), log(3), log(5), base(7), log(9), f".{log(9)}.crc"}
    assert lake.timeline.frontier == known[3]


def test_a_compaction_requested_before_the_commit_stays(tmp_path: Path) -> None:
    """It was overtaken by the commit; Hudi 1.2.0 itself fails to restore such a table."""
    lake = Lake(tmp_path / "t")
    lake.commit(1, base(1))
    lake.commit(3, base(3), operation="COMPACT", completed=8)
    kept = lake.commit(5, log(5))
    lake.commit(9, log(9))
    undo(lake.timeline, kept)
    assert files(lake) == {base(1), base(3), log(5)} and lake.timeline.frontier == kept


@pytest.mark.parametrize(
    ("step", "stands"), [("rollback.marked", 3), ("rollback.in_flight", 2), ("hudi.removal.inflight", 2)]
)
def test_killed_in_between_it_stands_at_a_commit_and_the_next_call_ends_it(step: str, stands: int, lake: Lake) -> None:
    known, uri = frontiers(lake), str(lake.root)
    environment = {**os.environ, FAULT_VARIABLE: step, "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run([sys.executable, "-c", CHILD, uri, known[1]], env=environment, check=False)
    assert result.returncode == -signal.SIGKILL
    assert lake.timeline.frontier == known[stands]
    undo(lake.timeline, known[1])
    assert files(lake) == {base(1), log(3)} and frontiers(lake) == known[:2]


@pytest.mark.parametrize("lost", [base(1), log(3)])
def test_where_a_file_of_then_is_gone_nothing_is_removed(lost: str, lake: Lake) -> None:
    known = frontiers(lake)
    (lake.root / "p=1" / lost).unlink()
    before = lake.timeline.names
    for refused in (lambda: undo(lake.timeline, known[1]), lambda: create_savepoint(lake.timeline, known[1], "me", "")):
        with pytest.raises(NodeError, match="are gone"):
            refused()
    assert lake.timeline.names == before


def test_slices_that_a_clean_names_are_gone_though_their_commits_were_archived(lake: Lake) -> None:
    known = frontiers(lake)
    lake.clean(11, [base(1), log(3), log(5)])
    lake.archive(known[0])
    with pytest.raises(NodeError, match="are gone"):
        undo(lake.timeline, known[2])


def test_a_return_to_a_savepoint_corrects_what_later_cleans_say(lake: Lake) -> None:
    known = frontiers(lake)
    kept = create_savepoint(lake.timeline, known[2], "me", "")
    lake.clean(13, [], kept=at(9))
    lake.plan_clean(15, [])
    assert missing_files(lake.timeline, known[2]) == [f"all before {at(9)}"]
    crc = lake.folder / f".{at(13)}_{at(14)}.clean.crc"
    crc.touch()
    assert undo(lake.timeline, known[2]) == [at(15), at(9), at(7)]
    assert missing_files(lake.timeline, known[2]) == [] and not crc.exists()
    assert files(lake) == {*kept.files["p=1"]}
    assert missing_files(lake.timeline, known[1]) == [f"all before {at(5)}"], "what else was cleaned is not known"


def test_a_commit_before_a_clean_is_refused_without_a_savepoint(lake: Lake) -> None:
    known = frontiers(lake)
    lake.clean(13, [], kept=at(9))
    with pytest.raises(NodeError, match=f"are gone, e.g. all before {at(9)}"):
        undo(lake.timeline, known[2])


def test_a_log_file_that_is_gone_is_a_problem_of_the_commits_that_need_it(lake: Lake) -> None:
    known, uri = frontiers(lake), str(lake.root)
    for name in (base(1), base(7)):
        pq.write_table(pa.table({"id": [1]}), lake.root / "p=1" / name)
    assert table_health(uri).is_whole
    (lake.root / "p=1" / log(9)).unlink()
    health = table_health(uri)
    assert health.good == known[2] and f"{log(9)} is gone" in (health.problem or "")
    undo(lake.timeline, known[2])
    assert table_health(uri).is_whole


def test_a_savepoint_keeps_base_and_log_files_as_of_its_commit(lake: Lake) -> None:
    known = frontiers(lake)
    # Not the compaction since, which a return to the savepoint takes off.
    assert create_savepoint(lake.timeline, known[2], "me", "").files == {"p=1": (log(3), log(5), base(1))}
    assert create_savepoint(lake.timeline, known[3], "me", "").files == {"p=1": (log(9), base(7))}


def test_a_commit_whose_metadata_is_broken_is_taken_off(lake: Lake) -> None:
    known = frontiers(lake)
    (lake.folder / f"{known[3]}.deltacommit").write_bytes(b"Obj")
    assert undo(lake.timeline, known[2]) == [at(9), at(7)]
    assert files(lake) == {base(1), log(3), log(5)}


def test_a_cleaned_slice_of_an_archived_copy_on_write_commit_is_noticed(tmp_path: Path) -> None:
    """No listing names it: only the commit that merged it does."""
    lake = test_timeline.Lake(tmp_path / "t")
    kept = lake.commit(3, ["other"])
    lake.commit(5, ["merged"], merged_from={"merged": 1})
    for refused in (lambda: undo(lake.timeline, kept), lambda: create_savepoint(lake.timeline, kept, "me", "")):
        with pytest.raises(NodeError, match="are gone"):
            refused()
    assert len(lake.timeline.commit_instants) == 2
