"""A node's unique id is one value, which is its text as well; nothing else takes ids apart."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path

import pytest

import sqlmesh_like
from sqlmesh_like.names import NodeId

PACKAGE = Path(sqlmesh_like.__file__).parent


@pytest.mark.parametrize(
    ("text", "kind", "package", "name", "parts"),
    [
        ("model.shop.orders", "model", "shop", "orders", ("orders",)),
        ("model.shop.orders.v2", "model", "shop", "orders.v2", ("orders", "v2")),
        ("source.shop.ods.user", "source", "shop", "ods.user", ("ods", "user")),
        ("test.shop.unique_orders_id.c5af1ff4b1", "test", "shop", "unique_orders_id.c5af1ff4b1",
         ("unique_orders_id", "c5af1ff4b1")),
    ],
)  # fmt: skip
def test_an_id_is_taken_apart_and_put_together(
    text: str, kind: str, package: str, name: str, parts: tuple[str, ...]
) -> None:
    parsed = NodeId.parse(text)
    assert (parsed.kind, parsed.package, parsed.name, parsed.parts) == (kind, package, name, parts)
    assert NodeId(parsed.kind, package, *parts) == NodeId(parsed.kind, package, name) == parsed == text


def test_an_id_is_its_text_to_json_and_mappings() -> None:
    unique_id = NodeId("model", "shop", "orders")
    assert json.dumps({unique_id: [unique_id]}) == '{"model.shop.orders": ["model.shop.orders"]}'
    assert {"model.shop.orders": 1}[unique_id] == {unique_id: 1}["model.shop.orders"] == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_an_id(copied: object) -> None:
    unique_id = NodeId("unit_test", "shop", "orders", "refunds")
    again = copied(unique_id)  # type: ignore[operator]
    assert type(again) is NodeId and again == unique_id and again.noun == "unit test"


def test_an_id_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        NodeId("model", "shop", "orders").kind = "seed"  # type: ignore[misc]


def test_nothing_else_takes_ids_apart() -> None:
    kinds = "model|source|seed|test|snapshot|macro"
    by_hand = re.compile(
        rf"""(?:unique_|node_)id\S*\.(?:split|r?partition|startswith)\(|f"(?:{kinds})\.|"(?:{kinds})\."[,)]"""
    )
    wrong = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "names.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if by_hand.search(line)
    ]
    assert not wrong
