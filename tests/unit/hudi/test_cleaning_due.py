"""When a table is cleaned: by the commits since the last clean, so that a savepoint does not cause one in each run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.hudi.history import LakeHistory
from tests.unit.hudi.test_timeline import Lake, at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Ten commits to one file group, requested at 1, 3, … 19."""
    lake = Lake(tmp_path / "t")
    for number in range(1, 20, 2):
        lake.commit(number, ["a"], merged_from={"a": number - 2} if number > 1 else {})
    return lake


def clean(lake: Lake, requested: int, earliest: int) -> None:
    content = json.dumps({"earliestCommitToRetain": at(earliest)})
    (lake.folder / f"{at(requested)}_{at(requested + 1)}.clean").write_text(content)


def savepoint(lake: Lake, requested: int) -> None:
    lake.mark(f"{at(requested)}_{at(40)}.savepoint")


def exceeds(lake: Lake, commits: int) -> bool:
    return LakeHistory().exceeds(str(lake.root), commits)


def test_without_a_clean_all_commits_count(lake: Lake) -> None:
    assert exceeds(lake, 9) and not exceeds(lake, 10)


def test_commits_count_from_the_last_clean_on(lake: Lake) -> None:
    savepoint(lake, 3)  # keeps all commits since on the timeline
    clean(lake, 20, earliest=11)
    assert not exceeds(lake, 5) and exceeds(lake, 4)
    clean(lake, 22, earliest=15)
    assert not exceeds(lake, 3) and exceeds(lake, 2)


def test_a_file_that_only_a_savepoint_keeps_makes_no_cleaning_due(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    lake.commit(1, ["a"])
    for number in range(3, 12, 2):  # new file groups only
        lake.commit(number, [f"f{number}"])
    lake.commit(13, ["a"], merged_from={"a": 1})
    lake.commit(15, ["b"])
    assert exceeds(lake, 1)  # can at least be archived
    savepoint(lake, 1)
    assert not exceeds(lake, 1)
    lake.commit(17, ["a"], merged_from={"a": 13})  # nothing keeps the slice of 13
    assert not exceeds(lake, 1)  # but the newest commit is kept, with what it was merged from
    lake.commit(19, ["b"], merged_from={"b": 15})
    assert exceeds(lake, 1)


def test_a_replaced_group_that_is_younger_than_the_savepoint_is_removed(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    lake.commit(1, ["a"])
    savepoint(lake, 1)
    lake.commit(3, ["b"], action="replacecommit", replaced={"p=1": ["a"]})
    lake.commit(5, ["c"])
    assert not exceeds(lake, 1)
    lake.commit(7, ["d"], action="replacecommit", replaced={"p=1": ["b"]})
    lake.commit(9, ["e"])
    assert exceeds(lake, 1)
