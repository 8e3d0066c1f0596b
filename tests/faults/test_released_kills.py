"""Runs with releases are killed at random while somebody reads: sums along the chain agree, and no failed row is seen.

By hand: `SML_DEEP=1 SML_KILLS=1000 pytest -s tests/faults/test_released_kills.py`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.errors import SmlError
from tests.faults.calls import finished, kill_after, start
from tests.faults.shop import DETAIL, Shop
from tests.faults.tally import SEED
from tests.levels import IS_DEEP

KILLS = int(os.environ.get("SML_KILLS", "1000" if IS_DEEP else "20"))
LONGEST = float(os.environ.get("SML_LONGEST", "1.5"))
"""Seconds within which a build is killed at random: about how long one takes on an idle machine."""
COMMITS_OF_A_LAKE = 9
"""After twice as many commits a build would clean history, which is Spark's."""
REFUSED = "between 13 and 16"
"""Amounts that a data test refuses."""
BUILD = ("build", "--exclude", "resource_type:seed")
READ = (
    "select (select sum(amount) from dws.detail) as below, (select sum(total) from dws.region) as above,"
    f" (select count(*) from dws.detail where amount {REFUSED}) as refused,"
    f" (select count(*) from dws.region where top {REFUSED}) as refused_above"
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop.changed(tmp_path_factory.mktemp("released"), random.Random(SEED), 0)
    with (shop.root / "pyproject.toml").open("a") as file:
        file.write('release = "tested"\n')
    (shop.root / "tests").mkdir()
    test = f"select * from {{{{ ref('detail') }}}} where amount {REFUSED}\n"
    (shop.root / "tests/refused.sql").write_text(test)
    return shop


@contextmanager
def reader(root: Path) -> Iterator[Path]:
    """A process that reads the current release, over and over; the file has what it saw, a line each time."""
    seen, stop = root / "seen.jsonl", root / "stop"
    stop.unlink(missing_ok=True)
    seen.write_text("")
    process = multiprocessing.get_context("spawn").Process(target=_read, args=(str(root), str(seen), str(stop)))
    process.start()
    try:
        yield seen
    finally:
        stop.touch()
        process.join(120)
        if process.is_alive():
            process.kill()


def _read(root: str, seen: str, stop: str) -> None:
    with Path(seen).open("a", buffering=1) as file:
        while not Path(stop).exists():
            with Project.load(root) as project:
                for _ in range(10):
                    file.write(json.dumps(_row(project)) + "\n")


def _row(project: Project) -> dict[str, object]:
    try:
        [row] = project.sql(READ).to_pylist()
    except SmlError as error:
        return {"error": str(error)}
    return {name: int(value or 0) for name, value in row.items()}


def released(shop: Shop) -> bool:
    """Whether the table of details, up to date, passes its test."""
    return not any(13 <= row[2] <= 16 for row in shop.stored(DETAIL))


@pytest.mark.deep
@pytest.mark.timeout(60 * 60 * 12)
def test_readers_see_whole_and_tested_releases_whenever_a_build_is_killed(shop: Shop) -> None:
    dice, totals = random.Random(SEED), Counter[str]()
    while totals["kills"] < KILLS:
        shop.reset()
        while True:  # a first release
            shop.change(dice)
            code, output = finished(start(shop.root, *BUILD))
            if code == 0 and released(shop):
                break
        with reader(shop.root) as seen:
            while totals["kills"] < KILLS and shop.most_commits <= COMMITS_OF_A_LAKE:
                shop.change(dice)
                code, output = kill_after(start(shop.root, *BUILD), dice.uniform(0.1, LONGEST))
                totals["kills"] += code == -signal.SIGKILL
                if dice.random() < 0.3:
                    code, output = finished(start(shop.root, *BUILD))
                    assert code == (0 if released(shop) else 1), output
                    totals["failed tests"] += code == 1
                    totals["whole builds"] += code == 0
        for line in seen.read_text().splitlines():
            row = json.loads(line)
            totals["reads"] += 1
            totals["errors"] += "error" in row
            totals["torn"] += row.get("below") != row.get("above")
            totals["untested"] += bool(row.get("refused") or row.get("refused_above"))
            if "error" in row:
                print(row["error"])
        print(dict(totals), flush=True)
    assert totals["torn"] == totals["untested"] == totals["errors"] == 0, totals
    assert totals["reads"] and totals["failed tests"] and totals["whole builds"], totals
