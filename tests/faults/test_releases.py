"""Runs stopped and killed between the commits of a chain: readers see one whole, tested release or the other."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sqlmesh_like import Project
from tests.faults.calls import finished, kill_group, start, wait_until_stopped
from tests.levels import parametrize
from tests.unit.app.test_releases import FILES, MORE, SUMS

OLD, NEW = 55, 62


def sums(root: Path, at: str | None = None) -> tuple[int, int]:
    """ΣDWD and ΣDWS as a reader sees them."""
    with Project.load(root) as project:
        ((row),) = project.sql(SUMS, at=at).to_pylist()
    return row["below"], row["above"]


@parametrize(
    ("step", "total", "tables"),
    suite=[("hudi.commit.complete:2", OLD, (NEW, OLD)), ("release.staged:1", OLD, (NEW, NEW))],
    release=[
        ("hudi.commit.complete:1", OLD, (OLD, OLD)),
        ("hudi.commit.complete:3", OLD, (NEW, NEW)),
        ("hudi.commit.staged:3", OLD, (NEW, OLD)),
        ("release.complete:1", NEW, (NEW, NEW)),
    ],
)
@pytest.mark.fault("a run is killed before, or while, it makes a release", ends="recovers")
def test_sums_along_a_chain_are_equal_at_any_step(
    step: str, total: int, tables: tuple[int, int], tmp_path: Path
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert finished(start(tmp_path, "build"))[0] == 0
    (tmp_path / "seeds/orders.csv").write_text(MORE)
    call = start(tmp_path, "build", fault=f"{step}:stop")
    assert wait_until_stopped(call), f"{step} is not reached: {finished(call)[1]}"
    assert sums(tmp_path, "latest-commit") == tables
    assert sums(tmp_path) == (total, total)
    kill_group(call)
    assert finished(call)[0] == -signal.SIGKILL
    assert sums(tmp_path) == (total, total)
    code, output = finished(start(tmp_path, "build"))
    assert code == 0, output
    assert sums(tmp_path) == (NEW, NEW)
