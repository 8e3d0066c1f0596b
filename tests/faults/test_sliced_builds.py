"""Builds in slices, killed between two slices, within one, and while the table takes its place: they go on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import COMMIT_POINTS, SLICE_POINTS
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.slices.sliced_build import beside
from tests.faults.calls import KILLED, finished, start
from tests.faults.shop import DAILY, ORDERS, Shop
from tests.levels import parametrize

WITHIN = tuple(step for step in COMMIT_POINTS if step not in ("hudi.commit.log",))
PLACES = ("promotion.aside", "promotion.moved")
"""Steps by which a table takes the place of another one."""


@parametrize(
    ("step", "time", "rebuilds"),
    suite=[("slices.committed", 2, False), ("hudi.commit.staged", 2, False), ("promotion.aside", 1, True)],
    release=[
        *((step, time, rebuilds) for step in WITHIN for time in (1, 2, 3) for rebuilds in (False, True)),
        *((SLICE_POINTS[0], time, rebuilds) for time in (1, 2, 3, 4) for rebuilds in (False, True)),
        *(("create.begin", 1, False), ("create.built", 1, True), ("create.end", 1, False)),
        *((step, 1, True) for step in PLACES),
        *((SLICE_POINTS[1], 1, rebuilds) for rebuilds in (False, True)),
    ],
)
@pytest.mark.fault("a build in slices is killed", ends="recovers")
def test_a_killed_build_goes_on_with_the_slice_that_is_not_committed(
    step: str, time: int, rebuilds: bool, tmp_path: Path
) -> None:
    shop, dice = Shop.changed(tmp_path, random.Random(4), 8), random.Random(time)
    built, words = shop.timeline(DAILY), ["-s", "daily", "--slices", "4"]
    if rebuilds:
        assert finished(start(tmp_path, "run", "-s", "daily"))[0] == 0
        words.append("--full-refresh")
    else:
        shutil.rmtree(built.uri)
    before = shop.stored(DAILY) if rebuilds else None
    code, output = finished(start(tmp_path, "run", *words, fault=f"{step}:{time}"))
    assert code == KILLED, f"{step} is not reached {time} times: {output}"
    slices = Timeline(beside(built.uri)).commit_instants
    is_moving = step in PLACES or step == SLICE_POINTS[1]
    if not is_moving:
        assert shop.timeline(DAILY).exists == rebuilds, "readers see a part of the table"
        assert before is None or shop.stored(DAILY) == before
    shop.commit(ORDERS, dice)
    code, output = finished(start(tmp_path, "run", *(["-s", "daily"] if is_moving else words)))
    assert code == 0, output
    assert shop.stored(DAILY) == shop.expected(DAILY)
    assert shop.timeline(DAILY).commit_instants[: len(slices)] == slices, "committed slices were built again"
    if step == "promotion.moved":  # the old table is still aside: the next rebuild removes it
        assert finished(start(tmp_path, "run", "-s", "daily", "--full-refresh"))[0] == 0
    assert not list((tmp_path / "warehouse/dws").glob("*__sml_*"))
    shutil.rmtree(tmp_path / "warehouse")
