"""`sml savepoint` with `sml rollback` and `sml history`, on tables that are built; no JVM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlmesh_like.cli.app import main
from tests.faults.shop import ORDERS, Shop
from tests.faults.test_rollback import frontiers, grown, sml


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop.made(tmp_path)


def savepoint(shop: Shop, *words: str) -> int:
    return main(["savepoint", words[0], "--project-dir", str(shop.root), *words[1:]])


def listed(shop: Shop, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert savepoint(shop, "list", *words, "--output", "json") == 0
    result: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return result


def test_a_table_goes_back_to_a_savepoint_and_past_it_only_without_it(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    known = grown(shop)
    saved = known[2].split("_")[0]
    there = ("--project-dir", str(shop.root))
    assert main(["savepoint", "create", "orders", "--at", saved, "--comment", "good", *there]) == 0
    assert f"dws.orders has a savepoint of {saved}: 1 file kept" in capsys.readouterr().out
    (one,) = listed(shop, capsys)
    assert (one["table"], one["instant"], one["comment"], one["files"]) == ("dws.orders", saved, "good", 1)

    assert sml(shop, "rollback", "orders", "--to", known[1], "--yes") == 1
    said = capsys.readouterr().err
    assert f"has the savepoint {saved}" in said and f"sml savepoint delete TABLE {saved}" in said
    assert frontiers(shop, ORDERS) == known

    assert sml(shop, "rollback", "orders", "--to", saved, "--yes") == 0
    assert frontiers(shop, ORDERS) == known[:3] and len(listed(shop, capsys, "orders")) == 1
    assert shop.stored(ORDERS) == shop.rows_at[ORDERS, known[2]]

    assert main(["savepoint", "delete", "orders", saved, *there]) == 0
    assert f"dws.orders has no savepoint of {saved} any more" in capsys.readouterr().out
    assert listed(shop, capsys) == []
    assert sml(shop, "rollback", "orders", "--to", known[1], "--yes") == 0
    assert frontiers(shop, ORDERS) == known[:2]


def test_history_and_the_list_show_savepoints(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    known = grown(shop)
    assert savepoint(shop, "list") == 0
    assert "There are no savepoints" in capsys.readouterr().out
    assert sml(shop, "history", "orders") == 0
    assert "savepoint" not in capsys.readouterr().out
    assert savepoint(shop, "create", "orders") == 0
    assert savepoint(shop, "create", "orders", "--at", known[1], "--comment", "the second") == 0
    capsys.readouterr()
    assert sml(shop, "history", "orders", "--output", "json") == 0
    shown = [commit["savepoint"] for commit in json.loads(capsys.readouterr().out)]
    assert shown[:3] == [None, "the second", None] and shown[3].startswith("by ")
    assert sml(shop, "history", "orders") == 0
    assert "the second" in capsys.readouterr().out
    # Flags may stand before the command.
    assert main(["--project-dir", str(shop.root), "savepoint", "list", "orders"]) == 0
    said = capsys.readouterr().out
    assert known[1].split("_")[0] in said and known[3].split("_")[0] in said and "the second" in said


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "nothing"), 2, "no table 'nothing'"),
        (("create", "orders", "--at", "yesterday"), 2, "neither an ISO 8601 time nor a commit"),
        (("create", "orders", "--at", "20200101000000000"), 1, "has no commit 20200101000000000"),
        (("delete", "orders", "20200101000000000"), 1, "has no savepoint 20200101000000000"),
        (("list", "nothing"), 2, "no table 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    words: tuple[str, ...], code: int, said: str, shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    known = grown(shop, 1)
    assert savepoint(shop, *words) == code
    printed = capsys.readouterr()
    assert said in printed.err + printed.out and "Traceback" not in printed.err
    assert frontiers(shop, ORDERS) == known and not shop.timeline(ORDERS).savepointed
