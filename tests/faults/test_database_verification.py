"""The lake compared with a real database by calls of `sml`: what differs is said, and repaired without Spark."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.faults.calls import LIMIT, finished, start
from tests.faults.database_shop import COLUMNS, DatabaseShop, database_shop
from tests.services.process import free_port

DIFFERENCES = (
    "update item set n = 777 where id = 1",
    "delete from item where id = 2",
    "insert into item values (100, 1)",
    "update ranked set n = 777 where id = 1",
    "delete from ranked where id = 2",
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[DatabaseShop]:
    with database_shop("mysql", tmp_path) as made:
        made.write_project()
        made.create_tables(20)
        yield made


@pytest.mark.release
def test_a_few_rows_are_repaired_without_spark_and_columns_keep_their_types(shop: DatabaseShop) -> None:
    shop.call("ingest", "-s", "source:shop")
    types = {name: shop.types(name) for name in COLUMNS}
    shop.change_unlogged(*DIFFERENCES)
    tables = "source:shop.item source:shop.ranked".split()
    assert "Done. PASS=0 WARN=0 ERROR=2" in shop.call("verify", "-s", *tables, code=1)
    output = shop.call("verify", "-s", *tables, "--repair")
    assert "Read again: 3 rows; deleted, because the database does not have them: 2" in output
    assert "Started Spark" not in output
    assert {name: shop.in_lake(name) for name in COLUMNS} == {name: shop.in_database(name) for name in COLUMNS}
    assert {name: shop.types(name) for name in COLUMNS} == types


@pytest.mark.release
def test_a_watch_says_that_the_lake_differs_until_it_does_not(shop: DatabaseShop) -> None:
    shop.write_project("verify: {every: 1 second, max_rows_per_second: 100000}")
    port, alerts = free_port(), shop.root / "alerts"
    watch = start(shop.root, "watch", "--listen", str(port), "--trigger", "1 second", "--alert", f"cat >> {alerts}")

    def until(is_reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        limit = time.monotonic() + LIMIT
        while True:
            assert time.monotonic() < limit and not watch.ended(), watch.output.read_text()[-3000:]
            with suppress(requests.ConnectionError):
                health = requests.get(f"http://127.0.0.1:{port}/health", timeout=120).json()
                if is_reached(health):
                    return dict(health)
            time.sleep(0.5)

    def status_of(health: dict[str, Any], table: str) -> str | None:
        record = health["comparisons"].get(f"ods.{table}") or {}
        return (record.get("finding") or {}).get("status")

    try:
        until(lambda health: [status_of(health, name) for name in ("item", "ranked")] == ["pass", "pass"])
        shop.change_unlogged("insert into item values (100, 777)")
        shop.change()  # the log goes on, and is read to its end by another engine meanwhile
        failing = until(lambda health: status_of(health, "item") == "fail")
        assert failing["status"] == "failing" and "1 rows differ" in failing["problems"]["rows of ods.item"]
        metrics = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=120).text
        assert 'sml_source_different_rows{table="ods.item"} 1.0' in metrics.splitlines()
        shop.change()
        shop.change_unlogged("delete from item where id = 100")
        until(lambda health: status_of(health, "item") == "pass" and health["status"] == "ok")
        shop.run("insert into entry values (-1)")
        until(lambda _: shop.in_lake("entry") == shop.in_database("entry"))
    finally:
        os.kill(watch.pid, signal.SIGTERM)
    code, output = finished(watch)
    assert code == 143, output[-3000:]
    assert {name: shop.in_lake(name) for name in COLUMNS} == {name: shop.in_database(name) for name in COLUMNS}
    assert '"kind": "difference", "subject": "ods.item"' in alerts.read_text()
    assert "the rows that differed from the database are as there again" in output
