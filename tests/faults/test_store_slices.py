"""Builds in slices on a real S3 server and on HDFS: killed within a slice, and while the table takes its place."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from sqlmesh_like.fault_points import COMMIT_POINTS, SLICE_POINTS, STORE_DROP_POINTS
from sqlmesh_like.hudi.storage import folder
from sqlmesh_like.hudi.stores.server_copies import file_sizes
from sqlmesh_like.hudi.stores.store_client import delete_files
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.plan.slices.sliced_build import beside
from tests.faults.calls import KILLED, finished, start
from tests.faults.shop import CUSTOMERS, DAILY, ORDERS, Shop
from tests.faults.store_shop import StoreShop
from tests.levels import parametrize
from tests.services.stores import ONLY_S3, Server
from tests.services.stores import server as server

BUILT, PLACED = SLICE_POINTS
WITHIN = tuple(step for step in COMMIT_POINTS if step not in ("hudi.commit.log", "hudi.commit.partition"))
BEFORE = ("promotion.ahead", *STORE_DROP_POINTS, "promotion.copied")
"""Steps after the last slice, before the new table is there."""


@pytest.fixture
def shop(project: Shop, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreShop:
    """A lake all of whose models are built, with changes of an input that none has read."""
    project.write_files()
    shop = StoreShop.copied(project, server, f"slices-{abs(hash(tmp_path)) % 10**12}")
    monkeypatch.chdir(shop.root)
    dice = random.Random(3)
    for name in (CUSTOMERS, *[ORDERS] * 8):
        shop.commit(name, dice)
    return shop


@parametrize(
    ("step", "time", "rebuilds"),
    suite=[(BUILT, 2, False), ("promotion.ahead", 1, True)],
    release=[
        *((step, time, rebuilds) for step in WITHIN for time in (1, 3) for rebuilds in (False, True)),
        *((BUILT, time, rebuilds) for time in (1, 3, 4) for rebuilds in (False, True)),
        *((step, 1, True) for step in STORE_DROP_POINTS),
        *(("promotion.copied", 1, rebuilds) for rebuilds in (False, True)),
        *((step, 1, rebuilds) for step in ("promotion.moved", PLACED) for rebuilds in (False, True)),
    ],
)
@pytest.mark.fault("a build in slices on a store is killed", ends="recovers")
def test_a_killed_build_goes_on_with_the_slice_that_is_not_committed(
    shop: StoreShop, step: str, time: int, rebuilds: bool
) -> None:
    table, words = shop.table(DAILY), ["run", "-s", "daily", "--slices", "4"]
    if rebuilds:
        words.append("--full-refresh")
    else:
        delete_files(table, folder(table).files())
    before = shop.stored(DAILY) if rebuilds else None
    code, output = finished(start(shop.root, *words, fault=f"{step}:{time}"))
    assert code == KILLED, f"{step} is not reached {time} times: {output}"
    slices, is_placed = Timeline(beside(table)).commit_instants, step in ("promotion.moved", PLACED)
    if not is_placed:
        assert slices or step in WITHIN
    if step in ("promotion.ahead", *STORE_DROP_POINTS) or (step not in BEFORE and not is_placed):
        assert shop.timeline(DAILY).exists == rebuilds, "readers see a part of the table"
        assert before is None or shop.stored(DAILY) == before
    shop.commit(ORDERS, random.Random(7))
    code, output = finished(start(shop.root, *(words[:3] if is_placed or step == "promotion.copied" else words)))
    assert code == 0, output
    assert shop.stored(DAILY) == shop.expected(DAILY)
    assert shop.timeline(DAILY).commit_instants[: len(slices)] == slices, "committed slices were built again"
    if is_placed:  # what was copied is found by the next build
        assert finished(start(shop.root, *words[:5], "--full-refresh"))[0] == 0
        assert shop.stored(DAILY) == shop.expected(DAILY)
    assert folder(beside(table)).files() == []
    assert shop.remains() == []


@ONLY_S3
def test_a_rebuild_s_files_are_there_before_its_table_goes_and_leave_with_it(shop: StoreShop) -> None:
    table, words = shop.table(DAILY), ["run", "-s", "daily", "--slices", "4", "--full-refresh"]
    code, output = finished(start(shop.root, *words, fault="promotion.ahead:1"))
    assert code == KILLED, output
    built = {path for path in folder(beside(table)).files() if path.endswith(".parquet")}
    assert built and built <= set(folder(table).files())
    model = shop.root / "models/daily.sql"
    model.write_text(model.read_text().replace("amount > 10", "amount > 10 and true"))
    shop.commit(ORDERS, random.Random(7))
    code, output = finished(start(shop.root, "run", "-s", "daily"))
    assert code == 0, output
    assert shop.stored(DAILY) == shop.expected(DAILY)
    assert not built & set(folder(table).files())
    assert shop.remains() == []


@ONLY_S3
@pytest.mark.release
@pytest.mark.parametrize("rebuilds", [False, True])
def test_spark_builds_in_slices_on_a_store(shop: StoreShop, rebuilds: bool) -> None:
    profile = json.loads((shop.root / "profiles.yml").read_text())
    profile["lake"]["outputs"]["store"]["delta_engine"] = "spark"
    (shop.root / "profiles.yml").write_text(json.dumps(profile))
    table, words = shop.table(DAILY), ["run", "-s", "daily", "--slices", "3", *(["--full-refresh"] if rebuilds else [])]
    if not rebuilds:
        delete_files(table, folder(table).files())
    code, output = finished(start(shop.root, *words, fault=f"{BUILT}:1"))
    assert code == KILLED, output
    (slice_,) = Timeline(beside(table)).commit_instants
    shop.commit(ORDERS, random.Random(7))
    code, output = finished(start(shop.root, *words))
    assert code == 0, output
    assert shop.stored(DAILY) == shop.expected(DAILY)
    assert shop.timeline(DAILY).commit_instants[0] == slice_
    assert file_sizes(beside(table)) == {}
