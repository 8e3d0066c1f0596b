"""Calls killed while they make an environment: production stays as it is."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from tests.faults.calls import finished, start
from tests.faults.shop import DETAIL, FILES, REGION, Shop
from tests.levels import parametrize
from tests.unit.app.test_environments import FILTER, edit, expected, production, rows_in


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A lake whose tables are up to date, and an edit of one of its models."""
    dice = random.Random(1)
    shop = Shop.made(tmp_path)
    (tmp_path / "models/region.sql").write_text(FILES["models/region.sql"].partition("}}\n")[2])  # not published
    for _ in range(5):
        shop.change(dice)
    assert finished(start(tmp_path, "run"))[0] == 0
    edit(tmp_path, *FILTER)
    return shop


@parametrize(
    "step",
    suite=["clone.end:1", "hudi.commit.complete:1"],
    release=["clone.built:1", "clone.built:2", "environment.cloned:1", "hudi.commit.staged:2"],
)
@pytest.mark.fault("a run is killed while it makes an environment", ends="recovers")
def test_a_killed_run_leaves_production_as_it_is_and_the_next_one_makes_the_rest(step: str, shop: Shop) -> None:
    before = production(shop.root)
    assert finished(start(shop.root, "run", "-e", "dev", fault=step))[0] == -signal.SIGKILL
    assert production(shop.root) == before
    code, output = finished(start(shop.root, "run", "-e", "dev"))
    assert code == 0, output
    assert production(shop.root) == before
    assert rows_in(shop.root, DETAIL) == expected(shop, DETAIL) and rows_in(shop.root, REGION) == expected(shop, REGION)
