"""A model that no longer runs: the history of its inputs is kept for the days of the profile, then cleaned."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sqlmesh_like.app.invocation import Invocation
from sqlmesh_like.app.lakes.lake import open_lake
from sqlmesh_like.app.loading.loaded import load
from sqlmesh_like.run.retention import AT_LEAST, Cleaning, due, horizon
from tests.faults.shop import ORDERS, Shop

UNREAD = 30


@pytest.mark.parametrize(("days_later", "is_kept"), [(6, True), (8, False)])
def test_what_it_has_not_read_is_kept_up_to_an_age(days_later: int, is_kept: bool, tmp_path: Path) -> None:
    shop, dice = Shop.made(tmp_path), random.Random(3)
    for _ in range(UNREAD):
        shop.commit(ORDERS, dice)
    loaded = load(Invocation(project_dir=shop.root))
    since = horizon(loaded.target.retention_days, datetime.now(UTC) + timedelta(days=days_later))
    expected = () if is_kept else (Cleaning(shop.timeline(ORDERS).uri, AT_LEAST),)
    assert due(open_lake(loaded).catalog, [ORDERS], since, slack=0) == expected
