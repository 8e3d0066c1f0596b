"""Tables on S3 with a cluster's master: its driver does what is small there, and no application is started."""

from __future__ import annotations

import json
import random
import shlex
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.faults import calls
from tests.faults.shop import CUSTOMERS, DETAIL, MODELS, ORDERS, Shop
from tests.faults.store_shop import StoreShop
from tests.services.stores import Server
from tests.services.stores import server as server

pytestmark = pytest.mark.release

ATTEMPTS = 3
"""How often Spark asks a standalone master before it gives up."""


@pytest.fixture
def shop(project: Shop, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreShop:
    """A lake that one machine has built, with a change that no model has read; the master is a cluster's, and away."""
    project.write_files()
    shop = StoreShop.copied(project, server, f"cluster-{abs(hash(tmp_path)) % 10**12}")
    shop.commit(CUSTOMERS, random.Random(3))
    monkeypatch.chdir(shop.root)
    set_output(shop.root, master="spark://127.0.0.1:1")
    return shop


def set_output(root: Path, **settings: object) -> None:
    profile = json.loads((root / "profiles.yml").read_text())
    profile["lake"]["outputs"]["store"] |= settings
    (root / "profiles.yml").write_text(json.dumps(profile))


def require_right(shop: StoreShop) -> None:
    assert {name: shop.stored(name) for name in MODELS} == {name: shop.expected(name) for name in MODELS}
    assert shop.remains() == []


def test_small_changes_start_no_application(
    shop: StoreShop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this must not need Spark")

    monkeypatch.setattr("sqlmesh_like.app.lakes.lake.spark_engine", refuse)
    since, dice = shop.timeline(DETAIL).frontier, random.Random(11)
    for _ in range(3):
        shop.commit(ORDERS, dice)
        assert main(["run"]) == 0, capsys.readouterr().err
        require_right(shop)
    query = "sql 'select count(*) from dws.detail'"
    for call in (query, f"changes detail --since {since}", "explain", "run", "verify --sample", "maintain"):
        assert main(shlex.split(call)) == 0, capsys.readouterr().err
    require_right(shop)


def test_of_two_calls_the_second_waits(shop: StoreShop) -> None:
    shop.commit(ORDERS, random.Random(2))
    both = [calls.start(shop.root, "run", "--lock-timeout", "120") for _ in range(2)]
    assert [calls.finished(call)[0] for call in both] == [0, 0]
    require_right(shop)


@pytest.mark.fault("a change for the executors of a cluster whose master does not answer", ends="refuses")
def test_without_the_cluster_a_larger_change_changes_nothing(shop: StoreShop) -> None:
    shop.commit(ORDERS, random.Random(2))
    set_output(shop.root, driver_max_bytes=3_000)
    before = {name: shop.timeline(name).frontier for name in MODELS}
    log = shop.root / "target" / "logs" / "spark.log"
    log.unlink(missing_ok=True)  # the other store's calls stand in it, for the project is the same
    output = calls.refused(calls.start(shop.root, "run"), within=calls.LIMIT)
    assert "Spark does not start on spark://127.0.0.1:1" in output
    assert output.count("the master has registered no application") == 3, "of the three models that read inputs"
    # Not its end, which Spark logs only if it comes before ours.
    assert log.read_text().count("Failed to connect to master") == ATTEMPTS, "it is waited for once"
    assert {name: shop.timeline(name).frontier for name in MODELS} == before and shop.remains() == []
