"""A swap of tables that a crash interrupted: what is moved where, told from folders made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.recovery.table_swap import recover, replace_table
from tests.unit.hudi.test_timeline import Lake, at


def table(path: Path, *, is_complete: bool = True) -> None:
    lake = Lake(path)
    if is_complete:
        lake.commit(1, [path.name])


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ({"t": True, "t__sml_new": True}, "t"),  # before the first rename
        ({"t__sml_old": True, "t__sml_new": True}, "t__sml_new"),
        ({"t__sml_old": True, "t__sml_new": False}, "t__sml_old"),  # somebody else took the table away
        ({"t": True, "t__sml_old": True}, "t"),
        ({"t__sml_new": True}, "t__sml_new"),  # a first build that was killed before it was moved
        ({"t__sml_new": False}, None),  # the table was deleted after a crash of the build
        ({}, None),
    ],
)
def test_each_state_is_recovered(tmp_path: Path, left: dict[str, bool], kept: str | None) -> None:
    for name, is_complete in left.items():
        table(tmp_path / name, is_complete=is_complete)
    assert recover(str(tmp_path / "t")) == (kept not in ("t", None))
    assert [path.name for path in tmp_path.iterdir()] == ([] if kept is None else ["t"])
    if kept is not None:
        assert list((tmp_path / "t" / "p=1").glob(f"{kept}_0-1-2_*.parquet"))
    assert not recover(str(tmp_path / "t"))


def test_a_table_with_a_savepoint_is_not_replaced(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "t")
    saved = lake.commit(1, ["a"])
    lake.mark(f"{at(1)}.savepoint.inflight")
    lake.mark(f"{saved}.savepoint")
    with pytest.raises(NodeError, match=f"has the savepoint {at(1)}"):
        replace_table(str(lake.root), "t", lambda _: pytest.fail("nothing may be built"))
    assert lake.timeline.frontier == saved
