"""The demo's event log and its generator: no JVM."""

from __future__ import annotations

import json
from pathlib import Path

from demo.shop.generate import begin, generate, go_on
from demo.shop.log import EVENTS, KEYS


def read(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.jsonl")))


def test_the_same_seed_gives_the_same_log(tmp_path: Path) -> None:
    sizes = {"users": 5, "products": 3, "orders": 9, "changes": 60}
    shop = generate(tmp_path / "a", **sizes, seed=3)
    assert shop == generate(tmp_path / "b", **sizes, seed=3)
    assert read(tmp_path / "a") == read(tmp_path / "b")
    generate(tmp_path / "c", **sizes, seed=4)
    assert read(tmp_path / "c") != read(tmp_path / "a")


def test_replaying_a_log_in_order_gives_the_shop_at_its_end(tmp_path: Path) -> None:
    shop = generate(tmp_path, users=5, products=3, orders=9, changes=120, seed=5)
    keys: dict[str, set[int]] = {"user": set(), "product": set(), "user_order": set()}
    for line in (*read(tmp_path / "part1").splitlines(), *read(tmp_path / "part2").splitlines()):
        message = json.loads(line) if line else {}
        body = message.get("payload", message)
        if body:
            table, row = body["source"]["table"], body["after"] or body["before"]
            change = keys[table].discard if body["op"] == "d" else keys[table].add
            change(row[KEYS[table]])
    assert keys == {table: set(shop.rows(table)) for table in keys}


def test_a_shop_that_goes_on_in_rounds_is_the_shop_of_one_round(tmp_path: Path) -> None:
    sizes = {"users": 5, "products": 3, "orders": 9}
    rounds = begin(tmp_path / "rounds", **sizes, seed=6)
    for name in ("a", "b"):
        go_on(tmp_path / "rounds", rounds, 30, name)
    assert rounds == generate(tmp_path / "once", **sizes, changes=60, seed=6)
    assert rounds.changed == 60


def test_the_demo_log_holds_the_rows_of_the_shop() -> None:
    bodies = []
    for line in "".join((EVENTS / f"{part}.jsonl").read_text() for part in ("1-snapshot", "2-new-orders")).splitlines():
        message = json.loads(line)
        bodies.append(message.get("payload", message))
    rows = {
        table: [b["after"] for b in bodies if b["source"]["table"] == table]
        for table in ("user", "product", "user_order")
    }
    assert [row["device_model"] for row in rows["user"]] == ["dm-01", "dm-02"]
    assert [row["onum"] for row in rows["user_order"]] == [100, 30, 22, 16]
    assert [row["pprice"] for row in rows["product"]] == ["MOA=", "WAM="]
