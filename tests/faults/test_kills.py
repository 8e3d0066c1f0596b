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
from tests.faults.calls import Call, finished, kill_after, refused, start, wait_until_stopped
from tests.faults.shop import Shop
from tests.faults.tally import SEED, tallied
from tests.levels import IS_DEEP, count

RANDOM_KILLS = int(os.environ.get("SML_KILLS", "750" if IS_DEEP else "2"))
STEPS = (*COMMIT_POINTS, *PUBLISH_POINTS)[:: count(2, 1, 1)]
COMMITS_OF_A_LAKE = 10
"""After twice as many commits a run would clean history, which is Spark's."""
LONGEST = float(os.environ.get("SML_LONGEST", "0.7"))
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
    dice = random.Random(SEED)
    kills = [(step, _killed_at(step)) for step in STEPS]
    with tallied("incremental run with publication") as tally:
        for number, (where, kill) in enumerate([*kills, *_random_kills(dice)]):
            if number == 0 or shop.most_commits > COMMITS_OF_A_LAKE:
                shop.reset()
            _until_killed(shop, dice, kill)
            tally.killed(where if where in STEPS else "at random")
            tally.look_after_kill(shop)
            tally.look_after_call(shop, *finished(start(shop.root, "run")))
            if IS_DEEP:
                print(where, tally, flush=True)
        assert tally.total == len(STEPS) + RANDOM_KILLS and set(STEPS) <= set(tally.kills)


@pytest.mark.timeout(1800)
def test_killed_while_the_remains_of_a_kill_are_removed_the_next_call_is_right(shop: Shop) -> None:
    dice = random.Random(SEED)
    shop.reset()
    with tallied("removal of an unfinished commit") as tally:
        for step in REMOVAL_POINTS:
            _until_killed(shop, dice, _killed_at("hudi.commit.files"))
            code, output = finished(start(shop.root, "run", fault=step))
            assert code == -signal.SIGKILL, output
            tally.killed(step)
            tally.look_after_kill(shop)
            tally.look_after_call(shop, *finished(start(shop.root, "run")))


@pytest.mark.timeout(1800)
def test_a_call_that_is_stopped_keeps_its_lock_and_goes_on(shop: Shop) -> None:
    """Its lock is the operating system's: it has no lease that could run out while the process sleeps."""
    dice = random.Random(SEED)
    shop.reset()
    with tallied("incremental run stopped and continued") as tally:
        for step in STEPS if IS_DEEP else ("hudi.commit.staged",):
            stopped = _until_stopped(shop, dice, step)
            output = refused(start(shop.root, "run"))
            assert f"process {stopped.pid}" in output, output
            tally.killed(step)
            tally.refused += 1
            if step != "publish.written":  # DuckDB lets no other process open a file with an open transaction
                tally.look_after_kill(shop)
            os.kill(stopped.pid, signal.SIGCONT)
            tally.look_after_call(shop, *finished(stopped))


def _until_stopped(shop: Shop, dice: random.Random, step: str) -> Call:
    """Change the lake until a run of it stops at a step."""
    for _ in range(8):
        shop.change(dice)
        call = start(shop.root, "run", fault=f"{step}:1:stop")
        if wait_until_stopped(call):
            return call
        assert finished(call)[0] == 0
    raise AssertionError("no call was stopped")
