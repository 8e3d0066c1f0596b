"""Calls killed while they make an environment, or production of one: each table of production stays whole."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.faults.calls import finished, kill_group, start, wait_until_stopped
from tests.faults.shop import CUSTOMERS, DAILY, DETAIL, ORDERS, REGION, Shop
from tests.levels import parametrize
from tests.unit.app.test_environments import DAILY_SQL, FILTER, edit, expected, production, rows_in


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake whose tables are up to date, and an edit of one of its models."""
    root = tmp_path_factory.mktemp("built")
    shop = Shop.changed(root, random.Random(1), 5)
    assert finished(start(root, "run"))[0] == 0
    edit(root, *FILTER)
    return shop


@pytest.fixture
def shop(built: Shop, tmp_path: Path) -> Shop:
    """A copy of it."""
    shutil.copytree(built.root, tmp_path, dirs_exist_ok=True)
    return Shop(tmp_path, dict(built.rows_at), built.changes)


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


@parametrize(
    ("step", "again"),
    suite=[("promotion.requested:1", "run"), ("promotion.aside:1", "promote dev")],
    release=[
        ("promotion.begin:1", "run"),
        ("promotion.linked:1", "promote dev"),
        ("promotion.committed:1", "run"),
        ("promotion.table:1", "promote dev"),
        ("promotion.aside:1", "run"),
        ("promotion.moved:1", "run"),
        ("promotion.table:2", "run"),
        ("promotion.released:1", "promote dev"),
        ("promotion.end:1", "run"),
    ],
)
@pytest.mark.fault("a promotion is killed between its steps", ends="recovers")
def test_a_killed_promotion_is_completed_by_the_next_call(step: str, again: str, shop: Shop) -> None:
    edit(shop.root, "amount > 10", "amount > 20", DAILY_SQL)
    edit(shop.root, "select day, id, amount", "select day, id, cast(amount as bigint) as amount", DAILY_SQL)
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0
    daily = [row for row in shop.expected(DAILY) if row[2] > 20]
    known = {DETAIL: (shop.expected(DETAIL), expected(shop, DETAIL)), DAILY: (shop.expected(DAILY), daily)}
    assert finished(start(shop.root, "promote", "dev", fault=step))[0] == -signal.SIGKILL
    for table, states in known.items():
        if step != "promotion.aside:1" or table != DAILY:  # between two renames it is not there
            assert shop.stored(table) in states
    code, output = finished(start(shop.root, *again.split()))
    assert code == 0, output
    assert not (shop.root / "warehouse/_sml/environments/dev").exists()
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)
    assert shop.stored(DAILY) == daily
    code, output = finished(start(shop.root, "run"))
    assert code == 0 and "NO-OP=4 TOTAL=4" in output, output
    for name in (ORDERS, CUSTOMERS):
        shop.commit(name, random.Random(7))
    assert finished(start(shop.root, "run"))[0] == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@pytest.mark.fault("another promotion, a run and a drop, while a promotion stands still", ends="refuses")
def test_nothing_else_uses_the_tables_of_a_promotion(shop: Shop) -> None:
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0
    call = start(shop.root, "promote", "dev", fault="promotion.committed:1:stop")
    assert wait_until_stopped(call), finished(call)[1]
    for words in (("promote", "dev"), ("run",), ("run", "-e", "dev"), ("env", "drop", "dev")):
        code, output = finished(start(shop.root, *words))
        assert code == 1 and "another `sml promote` is writing" in output, output
    kill_group(call)
    assert finished(call)[0] == -signal.SIGKILL
    assert finished(start(shop.root, "promote", "dev"))[0] == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)


@parametrize("step", suite=["promotion.linked"], release=["promotion.begin"])
@pytest.mark.fault("another writer commits to a table whose promotion was interrupted", ends="refuses")
def test_a_promotion_never_goes_over_another_writer_s_commit(shop: Shop, step: str) -> None:
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0
    assert finished(start(shop.root, "promote", "dev", fault=step))[0] == -signal.SIGKILL
    shop.write_unlocked(DETAIL, (99, 1, 50, "r1", False))
    at = shop.timeline(DETAIL).frontier
    code, output = finished(start(shop.root, "promote", "dev"))
    assert code == 2 and "dws.detail cannot be promoted" in output, output
    timeline = shop.timeline(DETAIL)
    assert timeline.frontier == at
    written = {write.path for commit in timeline.commits for write in commit.writes}
    assert timeline.data_files == written, "a file of no commit would count once older commits are archived"
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0  # its clone is made again
    assert rows_in(shop.root, DETAIL) == expected(shop, DETAIL)


@pytest.mark.release
@pytest.mark.fault("another writer commits to a table that an interrupted promotion replaces", ends="refuses")
def test_a_table_is_not_replaced_once_another_writer_has_committed_to_it(shop: Shop) -> None:
    edit(shop.root, "o.amount, c.region", "cast(o.amount as bigint) as amount, c.region")
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0
    assert finished(start(shop.root, "promote", "dev", fault="promotion.begin"))[0] == -signal.SIGKILL
    shop.write_unlocked(DETAIL, (99, 1, 50, "r1", False))
    rows = shop.stored(DETAIL)
    code, output = finished(start(shop.root, "promote", "dev"))
    assert code == 2 and "dws.detail cannot be promoted" in output, output
    assert shop.stored(DETAIL) == rows


@pytest.mark.release
@pytest.mark.fault("a run of production is killed in a table that is promoted then", ends="recovers")
def test_what_a_killed_run_left_of_a_table_does_not_prevent_its_promotion(shop: Shop) -> None:
    assert finished(start(shop.root, "run", "-e", "dev"))[0] == 0
    edit(shop.root, FILTER[1], FILTER[0])
    shop.commit(ORDERS, random.Random(8))
    assert finished(start(shop.root, "run", "-s", "detail", fault="hudi.commit.inflight"))[0] == -signal.SIGKILL
    edit(shop.root, *FILTER)
    code, output = finished(start(shop.root, "promote", "dev"))
    assert code == 0, output
    assert finished(start(shop.root, "run"))[0] == 0
    assert shop.stored(DETAIL) == expected(shop, DETAIL) and shop.stored(REGION) == expected(shop, REGION)
