"""The clock is set back between two calls: each commit still comes after the newest one of its table."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.hudi.writer.instant import require_clock_past
from tests.faults.calls import LIMIT, finished, refused, start
from tests.faults.file_systems import contents
from tests.faults.shop import CUSTOMER, CUSTOMERS, MODELS, ORDERS, Shop
from tests.faults.tally import Tally, assert_next_run_is_right

DAY = timedelta(days=1)


def _frontiers(timeline: Timeline) -> list[str]:
    """Requested and completed instants of the completed commits, in the order of completion."""
    frontiers = [commit.instant.frontier for commit in timeline.commits]
    return sorted(frontiers, key=lambda frontier: frontier.split("_")[1])


@pytest.mark.timeout(1800)
@pytest.mark.fault("the clock is set back", ends="recovers")
def test_commits_stay_in_order_and_rows_right_when_the_clock_goes_back_a_day(tmp_path: Path) -> None:
    shop, dice, tally = Shop.made(tmp_path, clock_ahead=DAY), random.Random(5), Tally("run")
    now = f"{datetime.now(UTC):%Y%m%d%H%M%S}"
    first = {name: shop.timeline(name).frontier or "" for name in (ORDERS, CUSTOMERS, *MODELS)}
    assert min(first.values()) > now
    for number in range(3):
        shop.change(dice)
        shop.change(dice)
        tally.where = f"call {number}"
        tally.look_after_call(shop, *finished(start(tmp_path, "run")))
    assert not tally.wrong, tally.wrong
    for name, oldest in first.items():
        frontiers = _frontiers(shop.timeline(name))
        instants = [instant for frontier in frontiers for instant in frontier.split("_")]
        assert frontiers[0] == oldest and len(frontiers) > 1, name
        assert instants == sorted(instants) and len(set(instants)) == len(instants), (name, instants)


@pytest.mark.release
@pytest.mark.timeout(1800)
@pytest.mark.fault("the clock is set back, and Hudi has to write", ends="refuses")
def test_a_write_by_hudi_is_refused_until_the_clock_is_right(tmp_path: Path) -> None:
    """Hudi takes the instant of a commit from the clock alone."""
    shop = Shop.made(tmp_path, clock_ahead=DAY)
    shop.change(random.Random(5))
    before, newest = contents(tmp_path / "warehouse" / "dws"), shop.timeline(CUSTOMER).frontier
    assert newest is not None
    output = refused(start(tmp_path, "run", "--full-refresh", "--select", "customer"), within=LIMIT)
    assert f"warehouse/dws/customer: its newest instant is {newest.split('_')[1]}" in output, output
    assert "set the clock right" in output
    assert contents(tmp_path / "warehouse" / "dws") == before
    assert_next_run_is_right(shop, "the clock is still behind")


@pytest.mark.fault("the clock is set back", ends="recovers")
def test_a_clock_that_is_a_little_behind_is_waited_for(tmp_path: Path) -> None:
    shop = Shop.made(tmp_path, clock_ahead=timedelta(hours=1, seconds=-59))
    timeline = shop.timeline("model.shop.detail")
    newest = (timeline.frontier or "").split("_")[1]
    require_clock_past(timeline)
    assert f"{datetime.now(UTC):%Y%m%d%H%M%S%f}"[:17] > newest


def test_a_table_of_the_past_is_not_waited_for(tmp_path: Path) -> None:
    require_clock_past(Shop.made(tmp_path).timeline(ORDERS))
    require_clock_past(Timeline(str(tmp_path / "no table")))
    with pytest.raises(NodeError, match="its newest instant is"):
        require_clock_past(Shop.made(tmp_path / "ahead", clock_ahead=DAY).timeline(ORDERS))
