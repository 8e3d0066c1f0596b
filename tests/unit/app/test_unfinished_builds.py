"""What rollback, repair, maintenance and the removal of orphans do beside a build in slices that is not finished."""

from __future__ import annotations

import random

import pytest

from sqlmesh_like.cli.app import main
from sqlmesh_like.run.retention import AT_LEAST, SLACK
from tests.faults.shop import ORDERS, Shop
from tests.unit.app.test_slices import (
    BY_TENS,
    DAILY,
    PER_DAY,
    begun,
    interrupt,
    left_beside,
    require_equal,
    rules,
    run,
    stored,
    write_models,
)
from tests.unit.app.test_slices import built as built

IDLE = {"select": ["daily"], "slices": 4}


@pytest.mark.parametrize("is_rebuild", [False, True])
def test_a_sweep_of_orphans_keeps_slices_that_a_run_goes_on_with(
    is_rebuild: bool, shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_rebuild:
        run(shop, select=["daily"])
    interrupt(shop, monkeypatch, 2, **IDLE, full_refresh=is_rebuild)
    commits = begun(shop, DAILY).commit_instants
    assert main(["ls", "--orphans"]) == 0 and "daily" not in capsys.readouterr().out
    assert main(["clean", "--orphans", "--yes"]) == 0
    run(shop, select=["daily"])
    assert shop.timeline(DAILY).commit_instants[:2] == commits
    require_equal(shop, DAILY)


def test_slices_of_a_model_that_is_gone_are_orphans(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt(shop, monkeypatch, 2, **IDLE)
    (shop.root / "models/daily.sql").unlink()
    assert main(["ls", "--orphans"]) == 0 and "dws.daily__sml_slices" in capsys.readouterr().out
    assert main(["clean", "--orphans", "--yes"]) == 0
    assert left_beside(shop) == []


@pytest.mark.parametrize("changes_after", [False, True])
@pytest.mark.parametrize("unique_id", [DAILY, PER_DAY, BY_TENS])
def test_a_build_of_inputs_that_were_rolled_back_begins_anew(
    unique_id: str, changes_after: bool, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, dice = shop.timeline(ORDERS).frontier, random.Random(3)
    assert earlier is not None
    shop.commit(ORDERS, dice)
    name = unique_id.rpartition(".")[2]
    interrupt(shop, monkeypatch, 1, select=[name], slices=4)
    assert main(["rollback", "orders", "--to", earlier, "--yes"]) == 0
    if changes_after:
        shop.commit(ORDERS, dice)
    done = run(shop, select=[name])[unique_id]
    assert "is no longer on the timeline" in rules(done)["SLC002"]
    require_equal(shop, unique_id)
    assert left_beside(shop) == []


def test_a_build_goes_on_after_a_rollback_of_what_it_has_not_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, dice = shop.timeline(ORDERS).frontier, random.Random(3)
    assert earlier is not None
    interrupt(shop, monkeypatch, 2, **IDLE)
    commits = begun(shop, DAILY).commit_instants
    shop.commit(ORDERS, dice)
    assert main(["rollback", "orders", "--to", earlier, "--yes"]) == 0
    shop.commit(ORDERS, dice)
    run(shop, select=["daily"])
    assert shop.timeline(DAILY).commit_instants[:2] == commits
    require_equal(shop, DAILY)


def test_a_table_that_is_rolled_back_is_what_its_rebuild_makes_of_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(shop, select=["daily"])
    earlier = shop.timeline(DAILY).frontier
    assert earlier is not None
    shop.commit(ORDERS, random.Random(3))
    run(shop, select=["daily"])
    interrupt(shop, monkeypatch, 2, **IDLE, full_refresh=True)
    assert main(["rollback", "daily", "--to", earlier, "--yes"]) == 0
    run(shop, select=["daily"])
    require_equal(shop, DAILY)
    assert left_beside(shop) == []


def test_visible_slices_that_are_rolled_back_are_built_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write_models(shop, ", build_by='day', build_visible=true")
    interrupt(shop, monkeypatch, 3, select=["per_day"])
    first = shop.timeline(PER_DAY).commit_instants[0].frontier
    assert main(["rollback", "per_day", "--to", first, "--yes"]) == 0
    assert len(stored(shop, PER_DAY)) == 1
    run(shop, select=["per_day"])
    require_equal(shop, PER_DAY)


def test_a_repair_takes_the_place_of_a_rebuild(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shop, select=["daily"])
    interrupt(shop, monkeypatch, 2, **IDLE, full_refresh=True)
    timeline = shop.timeline(DAILY)
    for path in sorted(timeline.data_files)[:2]:
        (shop.root / "warehouse/dws/daily" / path).unlink()
    assert main(["repair", "daily"]) == 0
    require_equal(shop, DAILY)
    assert left_beside(shop) == []


def test_maintenance_keeps_what_a_build_reads(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shop)
    interrupt(shop, monkeypatch, 1, **IDLE, full_refresh=True)
    commits, dice = begun(shop, DAILY).commit_instants, random.Random(8)
    for _ in range(AT_LEAST + SLACK):
        shop.commit(ORDERS, dice)
    run(shop, select=["per_day", "by_tens"])
    assert main(["maintain"]) == 0
    run(shop, select=["daily"])
    assert shop.timeline(DAILY).commit_instants[:1] == commits
    require_equal(shop)
    assert len(shop.timeline(ORDERS).commit_instants) < AT_LEAST + SLACK, "nothing needs them any more"
