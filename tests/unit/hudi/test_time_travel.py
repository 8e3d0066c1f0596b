"""Which frontier stood at a moment, told from timelines made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError, UsageError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.time_travel import frontier_at, state_at
from tests.unit.hudi.test_timeline import Lake, at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


@pytest.mark.checklist(48)
def test_a_moment_shows_the_newest_commit_that_had_completed(lake: Lake) -> None:
    first = lake.commit(1, ["a"], completed=2)
    second = lake.commit(3, ["a"], merged_from={"a": 1}, completed=9)
    lake.commit(5, ["b"], completed=6)
    lake.commit(20, ["c"], operation="CLUSTER", action="replacecommit", replaced={"p=1": ["a"]})
    moment = {n: f"2024-01-01T00:00:{n:02}Z" for n in (2, 6, 8, 9, 59)}
    frontiers = {n: frontier_at(lake.timeline, when) for n, when in moment.items()}
    # What was requested after a commit that was still being written could not be seen before it.
    assert frontiers == {2: first, 6: first, 8: first, 9: f"{at(5)}_{at(6)}", 59: f"{at(5)}_{at(6)}"}
    assert frontier_at(lake.timeline, "2024-01-01T01:00:03+01:00") == first
    assert frontier_at(lake.timeline, at(3)) == frontier_at(lake.timeline, second) == second


def test_commits_after_one_that_is_still_written_are_not_seen_yet(lake: Lake) -> None:
    first = lake.commit(1, ["a"])
    lake.mark(f"{at(3)}.inflight")
    lake.commit(5, ["b"])
    assert frontier_at(lake.timeline, "2024-01-01T00:00:59Z") == first == lake.timeline.frontier


@pytest.mark.parametrize(
    ("when", "error", "message"),
    [
        ("yesterday", UsageError, "neither an ISO 8601 time nor a commit"),
        ("2023-12-31", NodeError, "had nothing as of 2023-12-31: its first readable commit is"),
        (at(7), NodeError, "has no commit"),
    ],
)
def test_what_is_no_moment_of_the_table_is_told(lake: Lake, when: str, error: type[Exception], message: str) -> None:
    lake.commit(1, ["a"])
    with pytest.raises(error, match=message):
        frontier_at(lake.timeline, when)


def test_a_moment_whose_files_were_cleaned_is_refused(lake: Lake) -> None:
    first = lake.commit(1, ["a"])
    lake.commit(3, ["a"], merged_from={"a": 1})
    state = LakeHistory().state(str(lake.root))
    assert state_at(state, at(1)).frontier == first
    (lake.root / f"p=1/a_0-1-2_{at(1)}.parquet").unlink()
    with pytest.raises(NodeError, match="were cleaned"):
        state_at(state, at(1))
