"""No room for a commit or for the artifacts of a run: it is refused or reported, and the next call is right."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.calls import finished, refused, start
from tests.faults.file_systems import contents, full, small_disk
from tests.faults.shop import MODELS, Shop
from tests.faults.tally import Tally, assert_next_run_is_right

SEED = 20240501
ROOM_FOR_SOME = 48 * 1024
"""Bytes that are enough for a commit, and too few for all that a run writes."""


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("disk"), megabytes=16) as place:
        yield place


@pytest.fixture(scope="module")
def shop(disk: Path) -> Shop:
    return Shop.made(disk / "shop")


def _changed(shop: Shop) -> None:
    dice = random.Random(SEED)
    shop.reset()
    for _ in range(3):
        shop.change(dice)


@pytest.mark.timeout(1800)
@pytest.mark.fault("the disk is full", ends="refuses")
def test_without_any_room_a_run_is_refused_before_it_begins(disk: Path, shop: Shop) -> None:
    _changed(shop)
    before = contents(shop.root / "warehouse")
    with full(disk, free=0):
        output = refused(start(shop.root, "run"), 2)
    assert "target/checked.json: No space left on device" in output, output
    assert "free space on its file system, then: the same command again" in output
    assert contents(shop.root / "warehouse") == before
    assert_next_run_is_right(shop, "no room")


@pytest.mark.timeout(1800)
@pytest.mark.fault("the disk is full", ends="refuses")
def test_a_run_that_fills_the_disk_reports_each_table_and_leaves_no_commit_in_flight(disk: Path, shop: Shop) -> None:
    _changed(shop)
    with full(disk, free=ROOM_FOR_SOME):
        output = refused(start(shop.root, "run"))
        tally = Tally("run", where="little room")
        tally.look_after_kill(shop)
    assert "cannot be written: " in output and "No space left on device" in output, output
    assert "free space on its file system, then: sml run" in output, output
    assert not tally.wrong, tally.wrong
    assert not any(shop.timeline(model).pending for model in MODELS)
    assert_next_run_is_right(shop, "little room")


@pytest.mark.timeout(1800)
@pytest.mark.fault("a limit of file sizes is reached", ends="refuses")
def test_a_limit_of_file_sizes_is_reported_as_one(tmp_path: Path) -> None:
    """It needs no file system of its own, so it is tested everywhere."""
    shop = Shop.made(tmp_path)
    _changed(shop)
    assert finished(start(shop.root, "compile"))[0] == 0
    output = refused(start(shop.root, "run", largest_file=2048))
    for name in ("customer", "daily", "detail"):
        assert f"{name}: dws.{name}: {tmp_path}/warehouse/dws/{name} cannot be written: " in output, output
    assert "File too large" in output and "raise the limit of file sizes (ulimit -f), then: sml run" in output
    assert "the nodes ended as reported" in output
    tally = Tally("run", where="small files")
    tally.look_after_kill(shop)
    assert not tally.wrong, tally.wrong
    assert_next_run_is_right(shop, "small files")
