"""A target with the master of a cluster whose driver does what is small: no application of Spark is started."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from sqlmesh_like import Project
from sqlmesh_like.cli.app import main
from tests.faults.shop import CUSTOMER, DETAIL, FILES, MODELS, ORDERS, PROFILE, Shop


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake that a target on one machine has built, with changes that no model has read."""
    shop = Shop.changed(tmp_path_factory.mktemp("cluster"), random.Random(7), 3)
    with Project.load(shop.root) as project:
        project.run()
    return shop


def set_cluster(root: Path, settings: str = "") -> None:
    text = PROFILE.replace("local[2]", "spark://127.0.0.1:1")
    (root / "profiles.yml").write_text(text.replace("type: spark", f"type: spark\n{settings}"))


def test_changes_are_followed_on_the_driver(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    set_cluster(shop.root)
    since, dice, engines = shop.timeline(DETAIL).frontier, random.Random(11), set[object]()
    for _ in range(4):
        shop.change(dice)
        with Project.load(shop.root) as project:
            engines |= {getattr(each, "engine", None) for each in project.run().results if each.status != "no-op"}
        for name in MODELS:
            assert shop.stored(name) == shop.expected(name), name
    assert engines == {"duckdb"}
    query = "sql 'select count(*) from dws.detail'"
    for call in (query, f"changes detail --since {since}", "run", "verify --sample", "maintain"):
        assert main(shlex.split(call)) == 0, capsys.readouterr().err


def test_seeds_and_rows_compared_with_a_query_are_the_drivers(shop: Shop) -> None:
    set_cluster(shop.root)
    (shop.root / "seeds/orders.csv").write_text(FILES["seeds/orders.csv"] + "7,1,20,2024-01-09\n")
    with Project.load(shop.root) as project:
        results = project.build().results
    strategies = {each.node.unique_id: getattr(each, "strategy", None) for each in results}
    assert strategies[CUSTOMER] == "recompute_merge", "the history of its input is gone"
    assert shop.stored(ORDERS) == [(0, 0, 0, "2024-01-01"), (7, 1, 20, "2024-01-09")]
    assert shop.stored(CUSTOMER) == [(0, 1), (1, 1)]


@pytest.mark.parametrize("bound", [1, 3_000])
def test_what_is_larger_is_left_to_the_executors(shop: Shop, bound: int) -> None:
    """Files of these tables have a few kB: one byte is refused by the plan, some kB only while tables are read."""
    set_cluster(shop.root, f"      driver_max_bytes: {bound}")
    before = {name: shop.timeline(name).frontier for name in MODELS}
    shop.commit(ORDERS, random.Random(1))
    with Project.load(shop.root) as project, pytest.raises(AssertionError, match="this must not need Spark"):
        project.run()
    assert {name: shop.timeline(name).frontier for name in MODELS} == before
