"""Builds without Spark, killed at any step, leave no table, the old one or a whole new one; the next build is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import COMMIT_POINTS, CREATE_POINTS, SWAP_POINTS
from sqlmesh_like.hudi.recovery.table_swap import has_remains
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMERS, DETAIL, FILES, MODELS, ORDERS, Shop
from tests.levels import parametrize

STEPS = (*CREATE_POINTS, *(step for step in COMMIT_POINTS if step != "hudi.commit.log"))
_NOT_IN_A_REBUILD = ("hudi.commit.log", "hudi.commit.partition")
"""Steps of logs, which no rebuild writes, and of new partitions."""

SEEDS = {
    "seeds/orders.csv": "id,customer,amount,day\n1,1,20,2024-01-01\n2,1,5,2024-01-02\n3,2,30,2024-01-02\n",
    "seeds/customers.csv": "id,region\n1,north\n2,south\n",
}
ROWS = [(1, 1, 20, "north"), (2, 1, 5, "north"), (3, 2, 30, "south")]


@parametrize(
    ("step", "time"),
    suite=[("create.built", 3), ("hudi.commit.staged", 2)],
    release=[(step, time) for step in STEPS for time in (1, 4)],
)
@pytest.mark.fault("a first build without Spark is killed", ends="recovers")
def test_killed_at_any_step_the_next_build_is_right(step: str, time: int, tmp_path: Path) -> None:
    for path, text in {**FILES, **SEEDS}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code, output = finished(start(tmp_path, "build", fault=f"{step}:{time}"))
    assert code == -9, f"{step} is not reached {time} times: {output}"
    shop = Shop(tmp_path)
    for name in (ORDERS, CUSTOMERS, *MODELS):
        if Path(shop.timeline(name).uri).exists():
            assert shop.timeline(name).frontier is not None, f"a half table of {name} after {step}"
    code, output = finished(start(tmp_path, "build"))
    assert code == 0, output
    assert sorted(shop.stored(DETAIL)) == ROWS
    assert not list((tmp_path / "warehouse" / "dws").glob("*__sml_*"))
    shutil.rmtree(tmp_path / "warehouse")


@parametrize(
    ("step", "time"),
    suite=[("hudi.commit.staged", 3), ("hudi.commit.complete", 2)],
    release=[
        *((step, time) for step in COMMIT_POINTS if step not in _NOT_IN_A_REBUILD for time in (1, 2)),
        *((step, 1) for step in SWAP_POINTS),
    ],
)
@pytest.mark.fault("a full refresh without Spark is killed", ends="recovers")
def test_killed_at_any_step_of_a_full_refresh_the_next_one_is_right(step: str, time: int, tmp_path: Path) -> None:
    for path, text in {**FILES, **SEEDS}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    code, output = finished(start(tmp_path, "build"))
    assert code == 0, output
    if step in SWAP_POINTS:  # other types, so that the table is built beside the old one
        text = FILES["models/detail.sql"].replace("o.amount,", "cast(o.amount as bigint) as amount,")
        (tmp_path / "models/detail.sql").write_text(text)
    code, output = finished(start(tmp_path, "run", "--full-refresh", fault=f"{step}:{time}"))
    assert code == -9, f"{step} is not reached {time} times: {output}"
    shop = Shop(tmp_path)
    assert all(has_remains(shop.timeline(name).uri) or shop.timeline(name).frontier for name in MODELS), step
    if not has_remains(shop.timeline(DETAIL).uri):
        assert sorted(shop.stored(DETAIL)) == ROWS
    code, output = finished(start(tmp_path, "run", "--full-refresh"))
    assert code == 0, output
    assert sorted(shop.stored(DETAIL)) == ROWS
    assert not any(shop.timeline(name).unfinished or has_remains(shop.timeline(name).uri) for name in MODELS)
    shutil.rmtree(tmp_path / "warehouse")
