"""A restore by Hudi that did not complete: recognized before a write, with the command that completes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.interrupted_restore import interrupted_restore, require_no_restore
from sqlmesh_like.hudi.recovery.undo import undo
from tests.unit.hudi.test_timeline import Lake, at


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A restore to the first of three commits that has taken off the last."""
    lake = Lake(tmp_path / "t")
    for number in (1, 3):
        lake.commit(number, ["a"], merged_from={"a": 1} if number > 1 else {})
    lake.mark(f"{at(5)}.inflight")
    lake.file("a", 5, merged_from=3)
    lake.mark(f"{at(7)}.restore.inflight")
    (lake.folder / f"{at(7)}.restore.requested").write_text(json.dumps({"savepointToRestoreTimestamp": at(1)}))
    return lake


@pytest.mark.fault("Hudi's restore to a savepoint is killed", ends="refuses")
def test_writing_is_refused_with_the_command_that_completes_it(lake: Lake) -> None:
    with pytest.raises(NodeError, match=f"the restore {at(7)} of .* did not complete") as refused:
        require_no_restore(str(lake.root))
    assert f"sml rollback TABLE --to {at(1)} --yes" in str(refused.value)


@pytest.mark.parametrize("plan", [None, b"", b"{}"])
def test_a_plan_that_names_no_savepoint_leaves_the_commit_to_the_user(lake: Lake, plan: bytes | None) -> None:
    path = lake.folder / f"{at(7)}.restore.requested"
    path.unlink()
    if plan is not None:
        path.write_bytes(plan)
    with pytest.raises(NodeError, match="--to COMMIT --yes"):
        require_no_restore(str(lake.root))


@pytest.mark.fault("Hudi's restore to a savepoint is killed", ends="refuses")
def test_what_only_hudi_can_undo_is_left_to_it_until_it_is_undone(lake: Lake) -> None:
    with (lake.root / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write("hoodie.table.metadata.partitions=files\n")
    with pytest.raises(NodeError, match="did not complete") as refused:
        require_no_restore(str(lake.root))
    assert f"call Hudi's rollback_to_savepoint again, to {at(1)}" in str(refused.value)
    first = lake.timeline.commit_instants[0].frontier
    with pytest.raises(NodeError):
        undo(lake.timeline, first)
    # Killed after the last of them: Hudi itself fails to repeat such a restore.
    for name in [name for name in lake.timeline.names if name.startswith((at(3), at(5)))]:
        (lake.folder / name).unlink()
    with pytest.raises(NodeError, match="did not complete") as refused:
        require_no_restore(str(lake.root))
    assert f"`sml rollback TABLE --to {at(1)} --yes` completes it" in str(refused.value)
    assert undo(lake.timeline, first) == [at(7)]
    require_no_restore(str(lake.root))


def test_after_the_rollback_the_table_can_be_written(lake: Lake) -> None:
    first = lake.timeline.commit_instants[0].frontier
    assert undo(lake.timeline, first) == [at(7), at(5), at(3)]
    require_no_restore(str(lake.root))
    assert lake.timeline.frontier == first and not lake.timeline.unfinished
    assert lake.timeline.data_files == {f"p=1/a_0-1-2_{at(1)}.parquet"}


def test_a_completed_restore_and_a_table_without_one_are_not_interrupted(lake: Lake, tmp_path: Path) -> None:
    lake.mark(f"{at(7)}_{at(8)}.restore")
    assert interrupted_restore(lake.timeline) is None
    require_no_restore(str(lake.root))
    require_no_restore(str(tmp_path / "nothing"))
