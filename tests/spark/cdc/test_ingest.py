"""Ingestion on real Hudi: what an ODS table holds after events of every kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.ingest_lake import BY_MONTH, Lake, event, report_of, table

MakeLake = Callable[..., Lake]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> MakeLake:
    def make(*tables: Any, **settings: Any) -> Lake:
        return Lake(spark, tmp_path, tables or (table(),), settings)

    return make


@pytest.mark.checklist(19, 23)
def test_insert_update_delete_and_reinsert_end_as_in_the_source(lake: MakeLake) -> None:
    shop = lake()
    first = shop.ingest(
        event("c", {"id": 1, "v": "a"}),
        event("c", {"id": 2, "v": "ü 漢字 🛒"}),
        event("c", {"id": 3, "v": "gone in the batch"}),
        event("d", None, {"id": 3, "v": "gone in the batch"}),
        "",
        "null",
        # Of PostgreSQL's `pg_logical_emit_message`, and of SQL Server: after Debezium's documentation of both.
        '{"op": "m", "source": {"db": "db", "schema": "", "table": ""}, "message": {"prefix": "p", "content": "aGk="}}',
        '{"op": "c", "before": null, "after": {"id": 4, "v": "dbo"}, "source": {"connector": "sqlserver", "db": "db", '
        '"schema": "dbo", "table": "t", "commit_lsn": "00000027:00000758:0005", "event_serial_no": 1}}',
    )
    assert shop.rows() == [(1, "a"), (2, "ü 漢字 🛒"), (4, "dbo")]
    assert (report_of(first).upserts, report_of(first).deletes) == (3, 1)
    assert first.skipped == {"tombstone": 2, "skip": 1}
    shop.ingest(
        event("u", {"id": 1, "v": "b"}, {"id": 1, "v": "a"}),
        event("d", None, {"id": 2, "v": "ü 漢字 🛒"}),
        event("c", {"id": 2, "v": "back"}),
        event("c", {"id": 3, "v": "back too"}),
        event("d", None, {"id": 3, "v": "back too"}),
        event("c", {"id": 3, "v": "and again"}),
    )
    assert shop.rows() == [(1, "b"), (2, "back"), (3, "and again"), (4, "dbo")]
    assert shop.commits() == 2
    again = shop.run()
    assert (again.tables, shop.commits()) == ((), 2)


@pytest.mark.checklist(17)
def test_tables_written_one_after_another_hold_the_same(lake: MakeLake) -> None:
    shop = lake(table("a"), table("b"), concurrency=1)  # every other test has them written side by side
    report = shop.ingest(*(event("c", {"id": number, "v": name}, table=name) for number in (1, 2) for name in "ab"))
    assert not report.failed
    assert [shop.rows(name) for name in "ab"] == [[(1, name), (2, name)] for name in "ab"]


@pytest.mark.release
@pytest.mark.checklist(20, 21, 23)
def test_the_newest_by_order_by_wins_and_ties_go_to_the_log(lake: MakeLake) -> None:
    shop = lake(table(order_by=("modify_time",)))
    shop.ingest(
        event("c", {"id": 1, "v": "new", "modify_time": "2022-06-02T00:00:00Z"}),
        event("u", {"id": 1, "v": "late in the batch", "modify_time": "2022-06-01T00:00:00Z"}),
        event("c", {"id": 2, "v": "first", "modify_time": "2022-06-02T00:00:00Z"}),
        event("u", {"id": 2, "v": "tie", "modify_time": "2022-06-02T00:00:00Z"}),
        event("c", {"id": 3, "v": "null", "modify_time": None}),
        event("c", {"id": 4, "v": "x", "modify_time": "2022-06-05T00:00:00Z"}),
        event("c", {"id": 5, "v": "x", "modify_time": "2022-06-05T00:00:00Z"}),
    )
    assert [row[:2] for row in shop.rows()] == [(1, "new"), (2, "tie"), (3, "null"), (4, "x"), (5, "x")]
    shop.ingest(
        event("u", {"id": 1, "v": "late", "modify_time": "2022-06-01T12:00:00Z"}),
        event("u", {"id": 2, "v": "tie again", "modify_time": "2022-06-02T00:00:00Z"}),
        event("u", {"id": 3, "v": "null again", "modify_time": None}),
        # The before-image of a delete carries the time of the stored row, and must win the tie.
        event("d", None, {"id": 4, "v": "x", "modify_time": "2022-06-05T00:00:00Z"}),
        event("d", None, {"id": 5, "v": "w", "modify_time": "2022-06-04T00:00:00Z"}),
    )
    assert [row[:2] for row in shop.rows()] == [(1, "new"), (2, "tie again"), (3, "null again"), (5, "x")]
    late = shop.ingest(
        event("u", {"id": 4, "v": "older than its delete", "modify_time": "2022-06-04T00:00:00Z"}),
        event("c", {"id": 6, "v": "y", "modify_time": "2022-06-05T00:00:00Z"}),
    )
    assert [row[0] for row in shop.rows()] == [1, 2, 3, 5, 6]
    assert report_of(late).late == 1
    shop.ingest(event("c", {"id": 4, "v": "newer than its delete", "modify_time": "2022-06-05T00:00:00Z"}))
    assert (4, "newer than its delete", "2022-06-05T00:00:00Z") in shop.rows()


def row(id: int, month: str, modified: int, v: str = "x") -> dict[str, object]:
    return {
        "id": id,
        "v": v,
        "create_time": f"2022-{month}-01T10:00:00Z",
        "modify_time": f"2022-08-{modified:02d} 00:00:00",
    }


TYPES = {"id": "int", "create_time": "timestamp", "modify_time": "timestamp"}


@pytest.mark.checklist(25)
def test_a_row_that_moves_leaves_its_partition(lake: MakeLake) -> None:
    shop = lake(table(columns=TYPES, order_by=("modify_time",), partition_by=BY_MONTH))
    shop.ingest(
        event("r", row(1, "06", 1)),
        event("r", row(2, "06", 1)),
        event("r", {**row(3, "06", 1), "create_time": None}),
        event("c", row(4, "05", 1)),
        event("u", row(4, "06", 2), row(4, "05", 1)),
        event("u", row(4, "07", 3), row(4, "06", 2)),
        event("c", row(5, "05", 1)),
        event("u", row(5, "06", 2), row(5, "05", 1)),
        event("d", None, row(5, "06", 2)),
        event("c", row(5, "07", 3, "again")),
    )
    places = [("202206", 1), ("202206", 2), ("202207", 4), ("202207", 5), ("__null__", 3)]
    assert shop.rows("t", "year_month", "id") == places
    shop.ingest(event("u", row(1, "07", 5), row(1, "06", 1)), event("d", None, row(2, "06", 1)))
    assert shop.rows("t", "year_month", "id") == [("202207", 1), ("202207", 4), ("202207", 5), ("__null__", 3)]
    assert shop.commits() == 2
    shop.ingest(
        event("u", row(1, "06", 4, "late, of the old partition"), row(1, "06", 1)),
        event("u", row(2, "05", 1), row(2, "06", 1)),
        event("u", row(4, "06", 2, "late"), row(4, "06", 2)),
    )
    # The third event for key 2 ties with its delete in modify_time and is later in the log.
    assert shop.rows("t", "year_month", "id") == [
        ("202205", 2),
        ("202207", 1),
        ("202207", 4),
        ("202207", 5),
        ("__null__", 3),
    ]
    shop.ingest(
        event("u", row(1, "06", 9), row(1, "07", 5)),
        event("u", row(1, "05", 10), row(1, "06", 9)),
        # A changed primary key: the old one is gone. An update without before-image: where it stood is looked up.
        event("u", row(9, "05", 9), row(5, "07", 3)),
        event("u", row(4, "08", 9)),
    )
    assert shop.rows("t", "year_month", "id") == [
        ("202205", 1),
        ("202205", 2),
        ("202205", 9),
        ("202208", 4),
        ("__null__", 3),
    ]
