"""The live demo's comparison of ODS with the database, without services."""

from __future__ import annotations

from typing import Any, cast

import pytest

import demo.live.__main__ as demo
from demo.live import database

ROWS = {"user": [{"id": 1, "name": "a"}], "product": [{"pid": 1, "name": "b"}], "user_order": []}


def test_differences_are_counted_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def shown(name: str) -> list[dict[str, Any]]:
        read.append(name)
        return ROWS["user"] if name == "source:shop.user" else []

    monkeypatch.setattr(demo, "shown", shown)
    monkeypatch.setattr(database, "rows", lambda _, table: {row[database.KEYS[table]]: row for row in ROWS[table]})
    server = cast(Any, None)
    assert demo.differences(server, ["user"]) == []
    assert demo.differences(server, ["product"]) == ["product 1: None is not {'pid': 1, 'name': 'b'}"]
    assert read == ["source:shop.user", "source:shop.product"]
    assert demo.differences(server) == demo.differences(server, ["product"])
