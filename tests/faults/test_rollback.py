"""`sml rollback` and `sml repair` of tables that are built: rows, readers, and what a kill in between leaves."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.faults.calls import finished, start
from tests.faults.shop import CUSTOMER, DETAIL, ORDERS, REGION, Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.made(tmp_path)


def sml(shop: Shop, *words: str) -> int:
    return main([words[0], "--project-dir", str(shop.root), *words[1:]])


def frontiers(shop: Shop, unique_id: str) -> list[str]:
    return [commit.instant.frontier for commit in shop.timeline(unique_id).data_commits]


def grown(shop: Shop, commits: int = 3) -> list[str]:
    """The frontiers of the orders after some commits."""
    dice = random.Random(7)
    for _ in range(commits):
        shop.commit(ORDERS, dice)
    return frontiers(shop, ORDERS)


def test_what_follows_is_shown_and_nothing_is_changed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    known = grown(shop)
    assert sml(shop, "rollback", "orders", "--to", known[1]) == 0
    said = capsys.readouterr().out
    assert f"dws.orders goes back from {known[-1]} to {known[1]}" in said
    assert "2 commits are taken off" in said and "add --yes" in said
    # No model has read anything yet.
    assert f"{DETAIL} has read nothing of what is taken off" in said and f"{REGION} follows the models" in said
    assert frontiers(shop, ORDERS) == known


def test_a_table_goes_back_with_its_rows_and_files(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    known = grown(shop)
    files = shop.timeline(ORDERS).data_files
    assert sml(shop, "rollback", "orders", "--to", known[1].split("_")[0], "--yes") == 0
    assert "went back" in capsys.readouterr().out
    assert frontiers(shop, ORDERS) == known[:2] and not shop.timeline(ORDERS).unfinished
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[1]]
    assert len(files) == 3 and len(shop.timeline(ORDERS).data_files) == 1
    shop.commit(ORDERS, random.Random(8))
    assert shop.stored(ORDERS) == shop.recorded(ORDERS)


def test_models_that_read_what_is_taken_off_are_named_for_a_full_refresh(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    known = grown(shop)
    code, output = finished(start(shop.root, "run", "--select", "customer"))
    assert code == 0, output
    assert sml(shop, "rollback", "orders", "--to", known[2]) == 0
    said = capsys.readouterr().out
    assert f"{CUSTOMER} has read what is taken off: the next run runs its whole query (HIS003)" in said
    assert f"{DETAIL} has read nothing of what is taken off" in said
    assert sml(shop, "rollback", "orders", "--to", known[3]) == 0
    assert f"dws.orders stands at {known[3]} already" in capsys.readouterr().out


def test_an_interrupted_restore_is_named_and_completed(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    known = grown(shop)
    restore = f"{int(known[-1].split('_')[1]) + 1}"
    timeline = Path(shop.timeline(ORDERS).uri) / ".hoodie" / "timeline"
    for state in ("requested", "inflight"):
        (timeline / f"{restore}.restore.{state}").touch()
    assert sml(shop, "rollback", "orders", "--to", known[-1]) == 0
    said = capsys.readouterr().out
    assert f"dws.orders stays at {known[-1]}" in said and f"restore {restore}, which did not complete, is" in said
    assert sml(shop, "rollback", "orders", "--to", known[-2], "--yes") == 0
    said = capsys.readouterr().out
    assert "1 commit was taken off" in said and f"restore {restore}, which did not complete, was taken off" in said
    assert frontiers(shop, ORDERS) == known[:-1] and not shop.timeline(ORDERS).unfinished


@pytest.mark.parametrize("step", ["rollback.in_flight", "hudi.removal.inflight"])
def test_killed_in_between_the_next_call_ends_it(step: str, shop: Shop) -> None:
    known = grown(shop)
    words = ("rollback", "orders", "--to", known[1], "--yes")
    assert finished(start(shop.root, *words, fault=step))[0] == -signal.SIGKILL
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[2]]
    assert sml(shop, *words) == 0
    assert frontiers(shop, ORDERS) == known[:2] and shop.stored(ORDERS) == shop.rows_at[ORDERS, known[1]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rollback", "nothing", "--to", "2024-01-01"), "no table 'nothing'"),
        (("rollback", "orders", "--to", "yesterday"), "neither an ISO 8601 time nor a commit"),
        (("rollback", "orders", "--to", "20200101000000000"), "has no commit 20200101000000000"),
        (("repair", "nothing"), "no table 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    words: tuple[str, ...], said: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    known = grown(shop)
    assert sml(shop, *words) in (1, 2)
    printed = capsys.readouterr()
    assert said in printed.err + printed.out and "Traceback" not in printed.err
    assert frontiers(shop, ORDERS) == known


def test_where_a_file_of_then_was_cleaned_nothing_is_taken_off(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    known = grown(shop)
    oldest = min(shop.timeline(ORDERS).data_files, key=lambda path: path.rpartition("_")[2])
    (Path(shop.timeline(ORDERS).uri) / oldest).unlink()
    assert sml(shop, "rollback", "orders", "--to", known[1], "--yes") == 1
    assert "are gone" in capsys.readouterr().err
    assert frontiers(shop, ORDERS) == known
