"""Ingestion on real Hudi: what an ODS table holds after events of every kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ingest_lake import BY_MONTH, Lake, event, report_of, table
from pyspark.sql import SparkSession

MakeLake = Callable[..., Lake]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> MakeLake:
    def make(*tables: Any, **settings: Any) -> Lake:
        return Lake(spark, tmp_path, tables or (table(),), settings)

    return make


def test_insert_update_delete_and_reinsert_end_as_in_the_source(lake: MakeLake) -> None:
    shop = lake()
    first = shop.ingest(
        event("c", {"id": 1, "v": "a"}),
        event("c", {"id": 2, "v": "ü 漢字 🛒"}),
        event("c", {"id": 3, "v": "gone in the batch"}),
        event("d", None, {"id": 3, "v": "gone in the batch"}),
        "",
        "null",
    )
    assert shop.rows() == [(1, "a"), (2, "ü 漢字 🛒")]
    assert (report_of(first).upserts, report_of(first).deletes) == (2, 1)
    assert first.skipped == {"tombstone": 2}
    shop.ingest(
        event("u", {"id": 1, "v": "b"}, {"id": 1, "v": "a"}),
        event("d", None, {"id": 2, "v": "ü 漢字 🛒"}),
        event("c", {"id": 2, "v": "back"}),
        event("c", {"id": 3, "v": "back too"}),
        event("d", None, {"id": 3, "v": "back too"}),
        event("c", {"id": 3, "v": "and again"}),
    )
    assert shop.rows() == [(1, "b"), (2, "back"), (3, "and again")]
    assert shop.commits() == 2
    again = shop.run()
    assert (again.tables, shop.commits()) == ((), 2)
