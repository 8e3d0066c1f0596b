"""The lake compared with a real database by calls of `sml`: what differs is said, and repaired without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.database_shop import COLUMNS, DatabaseShop, database_shop

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
