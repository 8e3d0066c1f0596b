"""Models with nested columns: built, followed through random changes, verified, and read by another reader of Hudi."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hudi import HudiTableBuilder

from sqlmesh_like import Project
from tests.faults.shop import Shop

Rows = list[dict[str, Any]]


def shop_of(folder: Path, models: Mapping[str, str]) -> Shop:
    """A shop whose models are these."""
    shop = Shop.changed(folder, random.Random(7), 4)
    for name, sql in models.items():
        (shop.root / f"models/{name}.sql").write_text(sql)
    return shop


def require_followed(shop: Shop, expected: Callable[[Shop], Mapping[str, Rows]], batches: int) -> None:
    """Whether all models of the project in this folder have the expected rows, whatever changes, and no rebuild."""
    dice, ways = random.Random(3), set[str | None]()
    _run()
    for _ in range(batches):
        for name, rows in expected(shop).items():
            assert _read(shop, name) == sorted(rows, key=repr), name
        shop.change(dice)
        ways |= set(_run().values())
    assert ways >= {"row_based", "group_recompute"}
    assert "full_refresh" not in ways


def _run() -> dict[str, str | None]:
    """The strategy of each model."""
    with Project.load(Path()) as project:
        results = project.run().results
        assert {result.status for result in results} <= {"success", "no-op"}, [result.message for result in results]
        assert [each.difference.total for each in project.verify(sample=1000) if each.difference] == [0] * len(results)
    return {each.node.name: each.strategy for each in results}  # type: ignore[union-attr]


def _read(shop: Shop, name: str) -> Rows:
    """The rows as hudi-rs reads them, with their visible columns."""
    batches = HudiTableBuilder.from_base_uri(shop.timeline(f"model.shop.{name}").uri).build().read()
    rows = [{k: v for k, v in row.items() if not k.startswith("_")} for each in batches for row in each.to_pylist()]
    return sorted(rows, key=repr)
