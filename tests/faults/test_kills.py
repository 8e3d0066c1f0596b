"""`sml` is killed at each named step and at random moments: nothing is lost, doubled, stuck or silently wrong.

Models and publications are brought up to date without a JVM here, which makes a kill cheap; ingestion is killed in
`tests/spark/cdc/test_ingest_kills.py`. `make test-deep` kills a thousand times.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import COMMIT_POINTS, PUBLISH_POINTS, REMOVAL_POINTS
from tests.faults.calls import finished, kill_after, start, wait_until_stopped
from tests.faults.shop import Shop
from tests.faults.tally import Tally

IS_DEEP = os.environ.get("SML_DEEP") == "1"
RANDOM_KILLS = 970 if IS_DEEP else 7
SEED = int(os.environ.get("SML_SEED", "20240501"))
STEPS = (*COMMIT_POINTS, *PUBLISH_POINTS)
COMMITS_OF_A_LAKE = 10
"""After twice as many commits a run would clean history, which is Spark's."""
LONGEST = float(os.environ.get("SML_LONGEST", "3.5"))
"""Seconds within which a call is killed at random: about how long one takes on an idle machine."""
MOST_TIMES = 6
"""How often most steps are passed in one run."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.made(tmp_path_factory.mktemp("faults"))


def _killed_at(fault: str) -> Callable[[Path], int | None]:
    return lambda root: finished(start(root, "run", fault=fault))[0]


def _killed_after(seconds: float) -> Callable[[Path], int | None]:
    """After this time or, where a call had ended by then, after two thirds of it: machines differ in speed."""
    left = [seconds]

    def kill(root: Path) -> int | None:
        code = kill_after(start(root, "run"), left[0])[0]
        left[0] *= 2 / 3
        return code

    return kill


def _until_killed(shop: Shop, dice: random.Random, kill: Callable[[Path], int | None]) -> None:
    """Change the lake until a run of it is killed: a step is passed only where its model has something to do."""
    for _ in range(8):
        shop.change(dice)
        code = kill(shop.root)
        if code == -signal.SIGKILL:
            return
        assert code == 0, code
    raise AssertionError("no call was killed")


def _random_kills(dice: random.Random) -> Iterator[tuple[str, Callable[[Path], int | None]]]:
    for number in range(RANDOM_KILLS):
        if number % 3:
            seconds = dice.uniform(0.1, LONGEST)
            yield f"after {seconds:.2f} s", _killed_after(seconds)
        else:
            step, times = dice.choice(STEPS), dice.randint(2, MOST_TIMES)
            yield step, _killed_at_most(step, times)


def _killed_at_most(step: str, times: int) -> Callable[[Path], int | None]:
    """At the step for this or, where it does not come so often, for a smaller number of times."""
    left = [times]

    def kill(root: Path) -> int | None:
        code = finished(start(root, "run", fault=f"{step}:{left[0]}"))[0]
        left[0] = max(1, left[0] - 2)
        return code

    return kill


@pytest.mark.timeout(60 * 60 * 8 if IS_DEEP else 3600)
def test_killed_anywhere_nothing_is_lost_doubled_stuck_or_silent(shop: Shop) -> None:
    dice, tally = random.Random(SEED), Tally()
    kills = [(step, _killed_at(step)) for step in STEPS]
    for number, (where, kill) in enumerate([*kills, *_random_kills(dice)]):
        if number == 0 or shop.most_commits > COMMITS_OF_A_LAKE:
            shop.reset()
        _until_killed(shop, dice, kill)
        tally.kills[where if where in STEPS else "at random"] += 1
        tally.look_after_kill(shop, where)
        tally.look_after_call(shop, where, *finished(start(shop.root, "run")))
        if IS_DEEP:
            print(where, tally, flush=True)
    print(tally, dict(tally.kills))
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.total == len(STEPS) + RANDOM_KILLS and set(STEPS) <= set(tally.kills)


@pytest.mark.timeout(1800)
def test_killed_while_the_remains_of_a_kill_are_removed_the_next_call_is_right(shop: Shop) -> None:
    dice, tally = random.Random(SEED), Tally()
    shop.reset()
    for step in REMOVAL_POINTS:
        _until_killed(shop, dice, _killed_at("hudi.commit.files"))
        code, output = finished(start(shop.root, "run", fault=step))
        assert code == -signal.SIGKILL, output
        tally.kills[step] += 2
        tally.look_after_kill(shop, step)
        tally.look_after_call(shop, step, *finished(start(shop.root, "run")))
    assert not tally.wrong, "\n".join(tally.wrong)


@pytest.mark.timeout(1800)
def test_a_call_that_is_stopped_keeps_its_lock_and_goes_on(shop: Shop) -> None:
    """Its lock is the operating system's: it has no lease that could run out while the process sleeps."""
    dice, tally = random.Random(SEED), Tally()
    shop.reset()
    shop.change(dice)
    shop.change(dice)
    stopped = start(shop.root, "run", fault="hudi.commit.staged:1:stop")
    wait_until_stopped(stopped)
    code, output = finished(start(shop.root, "run"))
    assert code == 1 and f"process {stopped.pid}" in output, output
    tally.look_after_kill(shop, "stopped")
    os.kill(stopped.pid, signal.SIGCONT)
    tally.look_after_call(shop, "stopped", *finished(stopped))
    assert not tally.wrong, "\n".join(tally.wrong)
