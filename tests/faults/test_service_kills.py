"""Rollbacks, savepoints, drops and maintenance are killed: the same command again, then a run, and all is right."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from sqlmesh_like.fault_points import (
    ARCHIVE_POINTS,
    CLEAN_POINTS,
    DROP_POINTS,
    REMOVAL_POINTS,
    ROLLBACK_POINTS,
    SAVEPOINT_POINTS,
    UNSAVE_POINTS,
)
from sqlmesh_like.hudi.recovery.savepoints import create_savepoint, savepoints
from sqlmesh_like.plan.history import TableRecord
from tests.faults.calls import finished, kill_after, start
from tests.faults.shop import ORDERS, Shop
from tests.faults.tally import SEED, Tally, tallied
from tests.levels import IS_DEEP, parametrize
from tests.local_lake import make_table

RANDOM_KILLS = int(os.environ.get("SML_SERVICE_KILLS", "40" if IS_DEEP else "0"))
"""Of each service, besides a kill at each of its steps."""
LONGEST = 0.5
"""Seconds within which a call is killed at random: about how long one takes on an idle machine."""


@dataclass(frozen=True)
class Service:
    """A command that is killed. `prepare` gives its words, `look` adds what is wrong once it has succeeded."""

    what: str
    steps: Sequence[str]
    prepare: Callable[[Shop, random.Random], Sequence[str]]
    look: Callable[[Tally, Shop], None]
    finished_already: str = ""
    """What it says, with exit code 1, where the killed call had done everything."""


def _rollback(shop: Shop, dice: random.Random) -> Sequence[str]:
    """Two commits that no model has read are to be removed."""
    known = shop.timeline(ORDERS).frontier
    assert known is not None
    shop.commit(ORDERS, dice)
    shop.commit(ORDERS, dice)
    shop.rows_at[ORDERS, "kept"] = shop.rows_at[ORDERS, known]
    return "rollback", "orders", "--to", known, "--yes"


def _is_rolled_back(tally: Tally, shop: Shop) -> None:
    tally.compare(shop.stored(ORDERS), shop.rows_at[ORDERS, "kept"], "orders")
    if unfinished := shop.timeline(ORDERS).unfinished:
        tally.add("stuck", f"orders has {unfinished} in flight")


def _savepoint(shop: Shop, dice: random.Random) -> Sequence[str]:
    shop.commit(ORDERS, dice)
    return "savepoint", "create", "orders", "--comment", "kept"


def _is_saved(tally: Tally, shop: Shop) -> None:
    """It names the files of its commit; the next kill needs a table without."""
    timeline = shop.timeline(ORDERS)
    newest = timeline.commit_instants[-1]
    files = {path for each in savepoints(timeline) for paths in each.files.values() for path in paths}
    if files != {each.path for each in timeline.slices(newest.frontier).values()}:
        tally.add("lost", f"the savepoint has {files}")
    assert finished(start(shop.root, "savepoint", "delete", "orders", newest.requested))[0] == 0


def _unsave(shop: Shop, dice: random.Random) -> Sequence[str]:
    shop.commit(ORDERS, dice)
    timeline = shop.timeline(ORDERS)
    assert timeline.frontier is not None
    return "savepoint", "delete", "orders", create_savepoint(timeline, timeline.frontier, "test", "").instant


def _is_unsaved(tally: Tally, shop: Shop) -> None:
    if left := [name for name in shop.timeline(ORDERS).names if "savepoint" in name]:
        tally.add("stuck", f"of the savepoint are left {left}")


def _drop(shop: Shop, dice: random.Random) -> Sequence[str]:
    """The table of a model that is gone."""
    record = TableRecord("model.shop.gone", "print", {}, "2024-01-01T00:00:00+00:00", "full_refresh")
    make_table(_place(shop, "model.shop.gone"), pa.table({"id": [1, 2]}), record.to_json())
    return "clean", "--orphans", "--yes"


def _is_dropped(tally: Tally, shop: Shop) -> None:
    moved = (shop.root / "warehouse" / "_sml" / "dropped").iterdir()
    if left := [path for path in (_place(shop, "model.shop.gone"), *moved) if path.exists()]:
        tally.add("stuck", f"of the table are left {left}")


def _maintain(shop: Shop, dice: random.Random) -> Sequence[str]:
    """Change logs that a crash left long ago."""
    for number in range(3):
        log = _place(shop, ORDERS) / ".hoodie" / ".sml_changes" / f"20200101000000-{number}"
        log.mkdir(parents=True)
        (log / "part.parquet").write_bytes(b"x")
    return ("maintain",)


def _is_maintained(tally: Tally, shop: Shop) -> None:
    if left := list((_place(shop, ORDERS) / ".hoodie" / ".sml_changes").glob("2020*")):
        tally.add("stuck", f"of change logs are left {left}")


def _clean(shop: Shop, dice: random.Random) -> Sequence[str]:
    """More commits than are kept, which all models have read."""
    for _ in range(16):
        shop.commit(ORDERS, dice)
    assert finished(start(shop.root, "run"))[0] == 0
    return ("maintain", "-s", "orders")


def _is_cleaned(tally: Tally, shop: Shop) -> None:
    timeline = shop.timeline(ORDERS)
    if timeline.unfinished or timeline.before_gap:
        tally.add("stuck", f"orders has {timeline.unfinished} in flight, and {timeline.before_gap} before its history")
    kept = [commit.instant.frontier for commit in timeline.data_commits]
    needed = {each.path for frontier in kept[-11:] for each in timeline.slices(frontier).values()}
    # What has been cleaned moves to the history with the next clean, if not with this one.
    if len(kept) < 12 or timeline.data_files != needed:
        tally.add("stuck", f"of {len(kept)} commits {len(timeline.data_files)} files are left, {len(needed)} needed")


SERVICES = (
    Service("rollback", (*ROLLBACK_POINTS, *REMOVAL_POINTS), _rollback, _is_rolled_back),
    Service("creation of a savepoint", SAVEPOINT_POINTS, _savepoint, _is_saved, "has a savepoint of"),
    Service("deletion of a savepoint", UNSAVE_POINTS, _unsave, _is_unsaved, "has no savepoint"),
    Service("drop of tables without a node", DROP_POINTS, _drop, _is_dropped),
    Service("maintenance without Spark", ("maintain.begin", "maintain.log_removed"), _maintain, _is_maintained),
    Service("removal of history without Spark", (*ARCHIVE_POINTS, *CLEAN_POINTS), _clean, _is_cleaned),
)


def _place(shop: Shop, unique_id: str) -> Path:
    return Path(shop.timeline(unique_id).uri)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.made(tmp_path_factory.mktemp("services"))


@pytest.mark.timeout(60 * 60 * 2 if IS_DEEP else 1800)
@parametrize(
    ("service", "steps"),
    suite=[pytest.param(each, each.steps[-1:], id=f"{each.what}, late") for each in SERVICES],
    release=[pytest.param(each, each.steps, id=each.what) for each in SERVICES],
)
def test_a_service_that_is_killed_is_completed_by_the_same_command(
    service: Service, steps: Sequence[str], shop: Shop
) -> None:
    dice = random.Random(SEED)
    with tallied(service.what) as tally:
        for where in [*steps, *["at random"] * RANDOM_KILLS]:
            words = _killed_call(service, shop, dice, where)
            tally.killed(where)
            tally.look_after_kill(shop)
            code, output = finished(start(shop.root, *words))
            if code != 0 and not (service.finished_already and service.finished_already in output):
                tally.add("stuck", f"exit code {code}: {output[-1500:]}")
            service.look(tally, shop)
            shop.change(dice)
            tally.look_after_call(shop, *finished(start(shop.root, "run")))


def _killed_call(service: Service, shop: Shop, dice: random.Random, where: str) -> Sequence[str]:
    """The words of a call that was killed: at random, earlier and earlier until it has not ended by then."""
    seconds = dice.uniform(0.1, LONGEST)
    while True:
        shop.reset()
        shop.change(dice)
        words = service.prepare(shop, dice)
        if where == "at random":
            code, output = kill_after(start(shop.root, *words), seconds)
        else:
            code, output = finished(start(shop.root, *words, fault=where))
        if code == -signal.SIGKILL:
            return words
        assert code == 0 and where == "at random", output
        seconds *= 2 / 3
