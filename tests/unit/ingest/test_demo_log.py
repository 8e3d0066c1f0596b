"""The demo's event log and its generator: no JVM."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo_generate_unit", ROOT / "demo" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def read(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.jsonl")))


def test_the_same_seed_gives_the_same_log(generator: ModuleType, tmp_path: Path) -> None:
    sizes = {"users": 5, "products": 3, "orders": 9, "changes": 60}
    shop = generator.generate(tmp_path / "a", **sizes, seed=3)
    assert shop == generator.generate(tmp_path / "b", **sizes, seed=3)
    assert read(tmp_path / "a") == read(tmp_path / "b")
    generator.generate(tmp_path / "c", **sizes, seed=4)
    assert read(tmp_path / "c") != read(tmp_path / "a")


def test_replaying_a_log_in_order_gives_the_shop_at_its_end(generator: ModuleType, tmp_path: Path) -> None:
    shop = generator.generate(tmp_path, users=5, products=3, orders=9, changes=120, seed=5)
    found: dict[str, set[int]] = {"user": set(), "product": set(), "user_order": set()}
    for line in (*read(tmp_path / "part1").splitlines(), *read(tmp_path / "part2").splitlines()):
        message = json.loads(line) if line else {}
        body = message.get("payload", message)
        if body:
            table, row = body["source"]["table"], body["after"] or body["before"]
            change = found[table].discard if body["op"] == "d" else found[table].add
            change(row[generator.KEYS[table]])
    assert found == {table: set(shop.rows(table)) for table in found}


def test_the_demo_log_holds_the_rows_of_the_shop() -> None:
    bodies = []
    for line in read(ROOT / "demo" / "events" / "part1").splitlines():
        message = json.loads(line)
        bodies.append(message.get("payload", message))
    rows = {
        table: [b["after"] for b in bodies if b["source"]["table"] == table]
        for table in ("user", "product", "user_order")
    }
    assert [row["device_model"] for row in rows["user"]] == ["dm-01", "dm-02"]
    assert [row["onum"] for row in rows["user_order"]] == [100, 30, 22, 16]
    assert [row["pprice"] for row in rows["product"]] == ["MOA=", "WAM="]
