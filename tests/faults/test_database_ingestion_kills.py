"""`sml ingest` from a real database is killed anywhere, or its engine is: no row is lost, doubled or stuck afterwards.

What a kill leaves is compared with the database, after more changes there and one more call.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from sqlmesh_like.fault_points import (
    COMMIT_POINTS,
    CREATE_POINTS,
    DATABASE_POINTS,
    INGEST_POINTS,
    SMALL_BATCH_POINTS,
)
from sqlmesh_like.project.nodes import DatabaseKind
from tests.faults.calls import KILLED, LIMIT, Call, finished, jvm_of, start
from tests.faults.database_shop import COLUMNS, NAMES, DatabaseShop, database_shop
from tests.faults.tally import SEED, Tally, tallied
from tests.levels import count

STEPS = (*DATABASE_POINTS, *SMALL_BATCH_POINTS, *INGEST_POINTS, *COMMIT_POINTS, *CREATE_POINTS)
AT_RANDOM = count(1, 2, 8)
"""Kills at random moments of each kind; the named steps are all tried by a deep test."""
LONGEST = 4.0
"""Seconds within which a random moment is."""


@dataclass(frozen=True)
class Kill:
    """What is killed in an ingestion: of all rows, into an empty lake, or of changes. `step`: one of the driver's."""

    what: Literal["driver", "engine"]
    is_first: bool
    step: str | None = None


def kills(dice: random.Random) -> list[Kill]:
    """All kills of a level, in random order. A step that comes once for each table is reached for any of them."""
    steps = [
        Kill("driver", is_first, f"{step}:{dice.randint(1, 3) if step in COMMIT_POINTS or 'table' in step else 1}")
        for step in STEPS
        for is_first in (False, True)
    ]
    drawn = dice.sample(steps, count(2, 8, len(steps)))
    both: tuple[Literal["driver", "engine"], ...] = ("driver", "engine")
    at_random = [Kill(what, is_first) for what in both for is_first in (False, True) for _ in range(AT_RANDOM)]
    return dice.sample([*drawn, *at_random], len(drawn) + len(at_random))


@pytest.mark.release
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("kind", ["mysql", "postgresql"])
def test_nothing_is_lost_doubled_or_stuck(kind: DatabaseKind, tmp_path: Path) -> None:
    dice = random.Random(f"{kind} {SEED}")
    name = NAMES[kind]
    with database_shop(kind, tmp_path) as shop, tallied(f"ingestion from {name} without Spark", "calls") as tally:
        shop.write_project()
        shop.create_tables(1000)
        for kill in kills(dice):
            _kill(shop, kill, dice, tally)
        assert tally.total > len(STEPS) // 4


def _kill(shop: DatabaseShop, kill: Kill, dice: random.Random, tally: Tally) -> None:
    if kill.is_first:
        shop.forget_lake()
    elif not (shop.root / "warehouse").exists():
        shop.call("ingest", "-s", "source:shop")
    shop.change(4)
    call = start(shop.root, "ingest", "-s", "source:shop", fault=kill.step)
    if kill.step is None:
        _kill_at_random(call, kill.what, dice.random() * LONGEST)
    code, output = finished(call)
    if code == 0:
        _compare(shop, tally)  # it was not reached, or had ended before
        return
    phase = "all rows" if kill.is_first else "changes"
    what = kill.step.partition(":")[0] if kill.step else "at random"
    tally.killed(what)
    tally.where = f"{kill.what} of {phase}, {what}"
    if code is None or (kill.what == "driver" and code != KILLED):
        tally.add("stuck", f"the call itself ended with {code}: {output[-1500:]}")
    stored, known = Counter(shop.in_lake("entry")), Counter(shop.in_database("entry"))
    if more := stored - known:
        tally.add("silent", f"entry has {sorted(more.elements())[:5]} too many")
    shop.change(2)
    code, output = finished(start(shop.root, "ingest", "-s", "source:shop"))
    if code != 0:
        tally.add("stuck", f"exit code {code}: {output[-1500:]}")
        return
    assert "Started Spark" not in output, output
    _compare(shop, tally)


def _kill_at_random(call: Call, what: Literal["driver", "engine"], seconds: float) -> None:
    """Kill the driver alone, which its engine has to notice, or the engine, once there is one."""
    limit = time.monotonic() + LIMIT
    while not call.ended() and time.monotonic() < limit:
        try:
            engine = jvm_of(call.pid)
        except AssertionError:
            time.sleep(0.05)
            continue
        if not call.ended(seconds):
            os.kill(engine if what == "engine" else call.pid, signal.SIGKILL)
        return


def _compare(shop: DatabaseShop, tally: Tally) -> None:
    for name in COLUMNS:
        tally.compare(shop.in_lake(name), shop.in_database(name), name)
