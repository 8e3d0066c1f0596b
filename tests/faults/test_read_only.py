"""A warehouse, a table, a destination or a target folder that cannot be written: refused, with nothing changed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.faults.calls import finished, refused, start
from tests.faults.file_systems import contents, read_only
from tests.faults.shop import CUSTOMER, DAILY, DETAIL, MODELS, REGION, Shop
from tests.faults.tally import Tally, assert_next_run_is_right

EVENTS = """
version: 2
sources:
  - name: feed
    schema: ods
    ingest: {format: debezium, files: {path: events}}
    tables:
      - name: clicks
        ingest: {database: shop, table: clicks, primary_key: [id]}
        columns: [{name: id, data_type: int}]
"""
WRITING = [
    "run", "seed", "build", "ingest", "publish", "maintain", "clean --orphans", "savepoint create detail",
    "rollback detail --to 20240101000000000 --yes", "repair detail",
]  # fmt: skip
"""Commands that would write to the warehouse."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    shop = Shop.made(tmp_path_factory.mktemp("read_only"))
    (shop.root / "models" / "feed.yml").write_text(EVENTS)
    (shop.root / "events").mkdir()
    (shop.root / "target").mkdir()
    return shop


@pytest.fixture
def changed(shop: Shop) -> Shop:
    """With changes that no model has read."""
    dice = random.Random(20240501)
    shop.reset()
    for _ in range(3):
        shop.change(dice)
    return shop


@pytest.mark.timeout(3600)
@pytest.mark.fault("the warehouse, a table, a destination or the target folder cannot be written", ends="refuses")
def test_each_command_that_writes_refuses_a_read_only_warehouse(changed: Shop) -> None:
    warehouse = changed.root / "warehouse"
    assert finished(start(changed.root, "ls", "--orphans"))[0] == 0
    before = contents(warehouse)
    with read_only(warehouse):
        for command in WRITING:
            output = refused(start(changed.root, *command.split()), 2)
            assert f"the warehouse {warehouse} cannot be written: Read-only file system" in output, (command, output)
            assert "make its file system writable, then: the same command again" in output, (command, output)
        assert finished(start(changed.root, "show", "daily"))[0] == 0
    assert contents(warehouse) == before
    assert_next_run_is_right(changed, "read-only warehouse")


@pytest.mark.timeout(1800)
@pytest.mark.fault("the warehouse, a table, a destination or the target folder cannot be written", ends="refuses")
def test_a_table_that_is_read_only_fails_alone_with_its_readers(changed: Shop) -> None:
    with read_only(changed.root / "warehouse" / "dws" / "detail"):
        output = refused(start(changed.root, "run"))
    assert f"dws.detail: {changed.root}/warehouse/dws/detail cannot be written: Read-only file system" in output
    assert "make its file system writable, then: sml run" in output and "SKIP=1" in output, output
    assert [changed.stored(model) == changed.expected(model) for model in (CUSTOMER, DAILY)] == [True, True]
    assert changed.stored(DETAIL) == [] == changed.stored(REGION)
    assert_next_run_is_right(changed, "read-only table")


@pytest.mark.timeout(1800)
@pytest.mark.fault("the warehouse, a table, a destination or the target folder cannot be written", ends="refuses")
def test_destinations_that_are_read_only_are_sent_everything_by_the_next_call(changed: Shop) -> None:
    assert finished(start(changed.root, "run"))[0] == 0
    changed.change(random.Random(7))
    with read_only(changed.root / "serving"):
        output = refused(start(changed.root, "run"))
    tally = Tally("run", where="read-only destinations")
    tally.look_after_kill(changed)
    for place in ("bi: ", "files: ", "db: "):
        assert place in output, output
    assert output.count(", then: sml publish") == 3, output
    assert not tally.wrong, tally.wrong
    assert all(changed.stored(model) == changed.expected(model) for model in MODELS)
    assert_next_run_is_right(changed, "read-only destinations")


@pytest.mark.timeout(1800)
@pytest.mark.fault("the warehouse, a table, a destination or the target folder cannot be written", ends="refuses")
def test_a_run_whose_results_could_not_be_written_does_not_begin(changed: Shop) -> None:
    before, target = contents(changed.root / "warehouse"), changed.root / "target"
    with read_only(target):
        output = refused(start(changed.root, "run"), 2)
        assert f"error: cannot write {target}: Read-only file system" in output, output
        output = refused(start(changed.root, "clean"), 2)
        assert f"error: {target} cannot be removed: Read-only file system" in output, output
    assert contents(changed.root / "warehouse") == before
    assert_next_run_is_right(changed, "read-only target folder")


@pytest.mark.timeout(1800)
@pytest.mark.fault("the warehouse, a table, a destination or the target folder cannot be written", ends="refuses")
def test_a_target_folder_that_is_a_file_is_refused_everywhere(changed: Shop, tmp_path: Path) -> None:
    """It needs no file system of its own, so it is tested everywhere."""
    before, target = contents(changed.root / "warehouse"), tmp_path / "target"
    target.write_text("not a folder")
    output = refused(start(changed.root, "run", "--target-path", str(target)), 2)
    assert f"error: cannot write {target}: Not a directory" in output, output
    assert "make the folder writable, or set target-path in the settings" in output
    assert contents(changed.root / "warehouse") == before
