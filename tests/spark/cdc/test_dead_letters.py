"""Dead letters ingested again: nothing lost, nothing doubled, nothing newer overwritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.report import IngestReport
from sqlmesh_like.cdc.stream import replay as letters_again
from sqlmesh_like.cdc.stream.replay import replay
from sqlmesh_like.cdc.tables import dead_letters
from sqlmesh_like.hudi.timeline import Timeline
from tests.spark.ingest_lake import BY_MONTH, Lake, event, report_of, table

UNAVAILABLE = "__debezium_unavailable_value"
AMOUNT = {"n": "int"}
NO_ROW = "not a JSON object of a change event"


def mend(lake: Lake) -> None:
    """Declare what was no number as text."""
    texts = table(columns={"n": "string", "create_time": "timestamp"}).columns
    lake.tables = tuple(replace(each, columns=texts[: len(each.columns)]) for each in lake.tables)


def again(lake: Lake) -> IngestReport:
    return replay(lake.spark, *lake.declared())


def dated(number: int, month: str, m: int, n: object = "x") -> dict[str, Any]:
    return {"id": number, "n": n, "m": m, "create_time": f"2022-{month}-01T00:00:00Z"}


def test_letters_come_in_at_their_place_in_the_log(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_month = {"partition_by": BY_MONTH, "columns": {**AMOUNT, "create_time": "timestamp"}}
    keyless = table("keyless", primary_key=(), columns=AMOUNT)
    ordered = table("ordered", order_by=("m",), **by_month)
    shop = Lake(spark, tmp_path, (table(columns=AMOUNT), ordered, keyless, table("emptied", columns=AMOUNT)))
    shop.ingest(
        event("c", {"id": 1, "n": "x1"}),
        event("c", {"id": 2, "n": "x2"}),
        event("c", {"id": 3, "n": "x3"}),
        event("u", {"id": 3, "n": 33}),
        event("c", {"id": 4, "n": "x4"}),
        event("d", None, {"id": 4, "n": 4}),
        event("c", {"id": 5, "n": "x5"}),
        event("c", dated(1, "06", 1), table="ordered"),
        event("c", dated(2, "06", 5), table="ordered"),
        event("u", dated(2, "07", 3, 3), table="ordered"),
        event("c", {"id": 1, "n": "x"}, table="keyless"),
        event("c", {"id": 1, "n": 1}, table="keyless"),
        event("c", {"id": 1, "n": "x"}, table="emptied"),
        event("t", table="emptied"),
        event("c", {"id": 2, "n": "x"}, table="emptied"),
        "{never any JSON",
    )
    assert shop.rows() == [(3, 33)]
    # Later runs: an update, a delete, a row that stands in another partition than its letter's.
    shop.ingest(
        event("u", {"id": 1, "n": 11}),
        event("d", None, {"id": 5, "n": 5}),
        event("u", dated(1, "07", 2, 2), table="ordered"),
    )
    assert shop.rows("ordered", "year_month", "id", "n") == [("202207", 1, 2), ("202207", 2, 3)]
    assert len(shop.dead_letters()) == 11
    marks = {name: Timeline(shop.uri(name)).extra("sml.ingest") for name in ("t", "ordered", "keyless")}
    mend(shop)
    # Killed before letters leave their table: they come once more, to no effect.
    with monkeypatch.context() as patch:
        patch.setattr(dead_letters, "resolve_dead_letters", killed)
        with pytest.raises(RuntimeError, match="killed"):
            again(shop)
    report = again(shop)
    assert (report.resolved, report.dead_letters, report.failed) == (10, 1, False)
    assert [reason for _, _, reason, _ in shop.dead_letters()] == [NO_ROW]
    # 1 and 3 were changed later, 4 and 5 are deleted since; 2 alone was missed.
    assert shop.rows() == [(1, "11"), (2, "x2"), (3, "33")]
    assert shop.rows("ordered", "year_month", "id", "n") == [("202206", 2, "x"), ("202207", 1, "2")]
    assert shop.rows("keyless") == [(1, "1"), (1, "x")]
    assert shop.rows("emptied") == [(2, "x")]
    assert {name: Timeline(shop.uri(name)).extra("sml.ingest") for name in marks} == marks
    shop.ingest(event("u", {"id": 2, "n": "22"}))
    assert shop.rows() == [(1, "11"), (2, "22"), (3, "33")]


def killed(*_: object) -> None:
    raise RuntimeError("killed")


@pytest.mark.release
def test_what_a_letter_may_have_changed_is_not_guessed(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(columns={"n": "int"}),))
    shop.ingest(event("c", {"id": 1, "n": 1, "text": "old"}), event("c", {"id": 2, "n": 1, "text": "old"}))
    shop.ingest(event("u", {"id": 1, "n": "many", "text": "new"}), event("u", {"id": 2, "n": 2, "text": "new"}))
    shop.ingest(event("u", {"id": 1, "n": 3, "text": UNAVAILABLE}), event("u", {"id": 2, "n": 3, "text": UNAVAILABLE}))
    assert shop.rows("t", "id", "n", "text") == [(1, 1, "old"), (2, 3, "new")]
    why = "text: the source did not log this value, and an earlier event of the row is a dead letter"
    assert [reason for _, _, reason, _ in shop.dead_letters()][1] == why
    mend(shop)
    report = again(shop)
    assert (report.resolved, report.dead_letters, report_of(report).upserts) == (2, 0, 1)
    assert shop.rows("t", "id", "n", "text") == [(1, "3", "new"), (2, "3", "new")]


@pytest.mark.release
def test_without_one_order_of_the_log_a_letter_does_not_overtake(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Lake(spark, tmp_path, (table(columns=AMOUNT), table("emptied", columns=AMOUNT)))
    bad = [event("c", {"id": id, "n": "x"}) for id in (1, 2)]
    shop.ingest(*bad, event("c", {"id": 1, "n": "x"}, table="emptied"))
    shop.ingest(event("c", {"id": 1, "n": 1}), event("t", table="emptied"))
    # As if each file were a partition of a topic.
    monkeypatch.setattr(letters_again, "in_one_order", lambda source: False)
    mend(shop)
    report = again(shop)
    assert not report.failed, report
    assert (report.resolved, report.dead_letters) == (1, 2)
    assert shop.rows() == [(1, "1"), (2, "x")]
    assert {reason for _, _, reason, _ in shop.dead_letters()} == {
        "its row was changed since from another partition of the topic: nobody knows which event was first"
    }


def test_a_late_event_does_not_get_a_second_copy_of_a_row_that_stands_elsewhere(
    spark: SparkSession, tmp_path: Path
) -> None:
    types = {"id": "int", "create_time": "timestamp"}
    shop = Lake(spark, tmp_path, (table(order_by=("m",), partition_by=BY_MONTH, columns=types),))
    shop.ingest(event("c", dated(1, "07", 5, "new")))
    # It does not say where its row stood before, and is older than the row.
    late = shop.ingest(event("u", dated(1, "06", 2, "late")))
    assert shop.rows("t", "year_month", "id", "n") == [("202207", 1, "new")]
    assert report_of(late).late == 1


@pytest.mark.release
def test_a_key_that_changes_takes_its_row_along_though_only_the_key_is_logged(
    spark: SparkSession, tmp_path: Path
) -> None:
    types = {"id": "int", "create_time": "timestamp"}
    shop = Lake(spark, tmp_path, (table(order_by=("m",), partition_by=BY_MONTH, columns=types),))
    shop.ingest(event("c", dated(1, "07", 5)))
    shop.ingest(event("u", dated(2, "07", 6), {"id": 1}))
    assert shop.rows("t", "year_month", "id", "m") == [("202207", 2, 6)]


@pytest.mark.release
def test_a_row_whose_move_is_a_dead_letter_is_not_doubled(spark: SparkSession, tmp_path: Path) -> None:
    types = {"id": "int", "n": "int", "create_time": "timestamp"}
    shop = Lake(spark, tmp_path, (table(partition_by=BY_MONTH, columns=types),))
    shop.ingest(event("c", dated(1, "06", 1, 1)), event("c", dated(2, "06", 1, 1)))
    moves = [event("u", dated(id, "07", 2, "many"), dated(id, "06", 1, 1)) for id in (1, 2)]
    shop.ingest(*moves, event("u", dated(1, "07", 3, 3), dated(1, "07", 2, 2)))
    shop.ingest(event("u", dated(2, "07", 3, 3), dated(2, "07", 2, 2)))
    assert shop.rows("t", "year_month", "id", "n") == [("202207", 1, 3), ("202207", 2, 3)]


@pytest.mark.release
def test_a_key_is_the_same_after_its_column_has_widened(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(),))
    shop.ingest(event("c", {"id": 1, "v": "a"}), event("c", {"id": 2, "v": "a"}))
    shop.ingest(event("c", {"id": "A3", "v": "a"}), event("u", {"id": 1, "v": "b"}))
    shop.ingest(event("u", {"id": "2", "v": "c"}))
    assert shop.rows() == [("1", "b"), ("2", "c"), ("A3", "a")]
