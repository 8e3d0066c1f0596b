"""Another process writes between the moment at which a run reads and that at which it commits."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from tests.faults.calls import finished, start, wait_until_stopped
from tests.faults.shop import DETAIL, Shop
from tests.faults.tally import Tally, assert_next_run_is_right

FOREIGN = (99, 1, 1000, "nowhere", False)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop, dice = Shop.made(tmp_path), random.Random(11)
    shop.change(dice)
    shop.change(dice)
    return shop


@pytest.mark.timeout(1800)
@pytest.mark.fault("a writer without the lock commits during a run", ends="recovers")
def test_what_comes_into_an_input_meanwhile_is_left_to_the_next_run(shop: Shop) -> None:
    dice = random.Random(12)
    call = start(shop.root, "run", fault="hudi.commit.staged:1:stop")
    wait_until_stopped(call)
    shop.change(dice)
    shop.change(dice)
    os.kill(call.pid, signal.SIGCONT)
    code, output = finished(call)
    assert code == 0, output
    tally = Tally("run", where="an input moved")
    tally.look_after_kill(shop)
    assert not tally.wrong, tally.wrong
    assert shop.stored(DETAIL) != shop.expected(DETAIL)
    assert_next_run_is_right(shop, "an input moved")


@pytest.mark.timeout(1800)
@pytest.mark.fault("a writer without the lock commits during a run", ends="recovers")
def test_a_commit_to_the_table_of_a_model_meanwhile_makes_the_run_plan_again(shop: Shop) -> None:
    """Its own commit is given up, and the table is rebuilt (`HIS004`), so that the foreign row is not kept."""
    call = start(shop.root, "run", "--select", "detail", fault="hudi.commit.staged:1:stop")
    wait_until_stopped(call)
    shop.write_unlocked(DETAIL, FOREIGN)
    os.kill(call.pid, signal.SIGCONT)
    code, output = finished(call)
    assert code == 0 and "full_refresh" in output, output
    assert shop.stored(DETAIL) == shop.expected(DETAIL)
    assert_next_run_is_right(shop, "a foreign commit")
