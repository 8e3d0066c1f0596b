"""A first build without Spark, killed at any step, leaves no table or a whole one, and the next build is right."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import COMMIT_POINTS, CREATE_POINTS
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMERS, DETAIL, FILES, MODELS, ORDERS, Shop
from tests.levels import parametrize

STEPS = (*CREATE_POINTS, *(step for step in COMMIT_POINTS if step != "hudi.commit.log"))
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
