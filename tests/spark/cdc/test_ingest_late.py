"""Events in any order: what was older loses wherever its row stands now, and no key ever has two rows."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.merge import merge_sql
from sqlmesh_like.cdc.merge.counts import count_events
from sqlmesh_like.cdc.schema.ods_layout import OdsLayout
from sqlmesh_like.cdc.tables import stored_versions
from sqlmesh_like.names import Column
from tests.levels import parametrize
from tests.spark.ingest_lake import BY_MONTH, Lake, event, report_of, table
from tests.spoilt_files import poison_rows
from tests.unit.cdc.test_bad_events_without_spark import BY_KIND, FILLED, WHOLE, of_all_types

BATCHES = 3
TYPES = {"id": "int", "m": "int", "at": "timestamp"}
PARTS = replace(BY_MONTH, column="at")

Row = dict[str, object]


def row(id: int, m: int, month: int) -> Row:
    return {"id": id, "m": m, "at": f"2022-{month:02d}-01T00:00:00Z"}


def history(dice: random.Random) -> tuple[list[tuple[str, Row | None, Row | None]], dict[int, Row]]:
    """What happened to a source's table, in order (op, row after, row before), and its rows in the end."""
    rows: dict[int, Row] = {}
    changes: list[tuple[str, Row | None, Row | None]] = []
    for m in range(1, 90):
        id = dice.randrange(14)
        after, before = row(id, m, dice.randint(1, 3)), rows.get(id)
        if before is not None and dice.random() < 0.3:
            changes.append(("d", None, {**before, "m": m}))
            del rows[id]
        elif before is not None and dice.random() < 0.2 and (other := dice.randrange(14)) not in rows:
            changes.append(("u", {**after, "id": other}, {**before, "m": m}))
            rows[other] = {**after, "id": other}
            del rows[id]
        else:
            changes.append(("u" if before else "c", after, before))
            rows[id] = after
    return changes, rows


def test_whatever_order_events_come_in_the_newest_of_a_key_stays(spark: SparkSession, tmp_path: Path) -> None:
    dice = random.Random(int(os.environ.get("SML_SEED", "7")))
    happened, rows = history(dice)
    dice.shuffle(happened)
    shop = Lake(spark, tmp_path, (table(columns=TYPES, order_by=("m",), partition_by=PARTS),))
    for batch in range(BATCHES):
        lines = [logged(dice, *each) for each in happened[batch::BATCHES]]
        assert not shop.ingest(*lines).dead_letters
        ids = [id for (id,) in shop.rows("t", "id")]
        assert len(ids) == len(set(ids)), (batch, ids)
    wanted = sorted((id, each["m"], str(each["at"])[:7].replace("-", "")) for id, each in rows.items())
    assert sorted(shop.rows("t", "id", "m", "year_month")) == wanted


def test_a_late_event_that_names_another_partition_leaves_one_row(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table(columns=TYPES, order_by=("m",), partition_by=PARTS),))
    newest, late, between = ((row(1, 4, 2), row(1, 3, 2)), (row(1, 2, 1), row(1, 1, 1)), (row(1, 3, 2), row(1, 2, 1)))
    for after, before in (newest, late, between):
        assert not shop.ingest(event("u", after, before)).dead_letters
        assert shop.rows("t", "id", "m", "year_month") == [(1, 4, "202202")]
    assert not shop.ingest(event("d", None, row(1, 3, 1))).dead_letters
    assert shop.rows("t", "id", "m", "year_month") == [(1, 4, "202202")]
    assert not shop.ingest(event("d", None, row(1, 5, 1))).dead_letters
    assert shop.rows("t", "id") == []


def logged(dice: random.Random, op: str, after: Row | None, before: Row | None) -> str:
    """The event; every other update that keeps its key does not tell the row before."""
    keeps = after is not None and before is not None and after["id"] == before["id"]
    return event(op, after, None if keeps and dice.random() < 0.5 else before)


@parametrize("order_by", suite=[("m",)], release=[()])
def test_a_row_whose_place_is_unknown_is_not_looked_for_in_files_of_other_keys(
    spark: SparkSession, tmp_path: Path, order_by: tuple[str, ...]
) -> None:
    shop = Lake(spark, tmp_path, (table(columns=TYPES, order_by=order_by, partition_by=PARTS),))
    shop.ingest(*(event("c", row(10 * month + id, 1, month)) for month in (1, 2, 3) for id in range(10)))
    assert poison_rows(shop.uri(), lambda path: path.startswith("year_month=202203/")) == 2
    report = report_of(shop.ingest(event("u", row(35, 2, 3)), event("u", row(36, 2, 3))))
    assert (report.upserts, report.error) == (2, None)
    march = spark.read.format("hudi").load(shop.uri()).where("year_month = '202203' and m = 2")
    assert sorted(each["id"] for each in march.collect()) == [35, 36]
    assert report_of(shop.ingest(event("u", row(15, 3, 3)))).error, "the rows are unreadable indeed"


@pytest.mark.release
@pytest.mark.parametrize("order_by", [(), ("m",)])
def test_rows_found_in_files_and_rows_found_by_a_join_lead_to_the_same_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order_by: tuple[str, ...]
) -> None:
    batches = (
        [event("c", row(id, 10 * id, 1 + id % 3)) for id in range(1, 13)],
        # All rows are where their events name them, and new keys are nowhere.
        [event("u", row(1, 11, 2)), event("u", row(2, 20, 3)), event("c", row(13, 1, 1))],
        # A row moves; two events are older than what is stored, and one of these names another partition.
        [*(event("u", row(*each)) for each in ((3, 31, 3), (4, 1, 2), (5, 2, 1))), event("c", row(14, 1, 1))],
        # A key with two events; a delete without partition and order (with `order_by`, a dead letter), one with both.
        [
            *(event("u", row(*each)) for each in ((6, 61, 2), (6, 62, 3), (8, 9, 3))),
            *(event("d", None, before) for before in ({"id": 7}, row(10, 101, 2))),
        ],
        # Now it is remembered which row was deleted, and which ones moved.
        [event("u", row(*each)) for each in ((10, 5, 2), (7, 5, 2), (6, 60, 2), (9, 91, 2), (15, 1, 1))],
    )
    rows, counts = [], []
    for name, limit in (("files", stored_versions.MOST_KEYS), ("join", -1)):
        monkeypatch.setattr(stored_versions, "MOST_KEYS", limit)
        (tmp_path / name).mkdir()
        shop = Lake(spark, tmp_path / name, (table(columns=TYPES, order_by=order_by, partition_by=PARTS),))
        reports = [report_of(shop.ingest(*batch)) for batch in batches]
        rows.append(sorted(shop.rows("t", "id", "m", "year_month")))
        counts.append([(report.upserts, report.deletes, report.late) for report in reports])
    assert rows[0] == rows[1] and counts[0] == counts[1]
    assert [id for id, _, _ in rows[0]] == sorted({*range(1, 16)} - {10 if order_by else 0})
    assert [late for _, _, late in counts[0]] == ([0, 0, 2, 1, 3] if order_by else [0] * 5)


def test_keys_that_come_once_become_the_same_without_grouping(spark: SparkSession) -> None:
    declared = table(columns=TYPES, order_by=("m",), partition_by=PARTS)
    assert declared.ingest is not None
    layout = OdsLayout(declared, declared.ingest, tuple(Column(name, kind) for name, kind in TYPES.items()))
    image = "named_struct('id', cast(id as int), 'm', cast(id as int), 'at', timestamp(concat('2022-0', {}, '-01')))"
    message = {
        "position": "lpad(id, 3, '0')",
        "kind": "if(id % 3 = 0, 'delete', 'upsert')",
        "before": f"if(id % 2 = 0 or id % 3 = 0, {image.format('1 + id % 2')}, null)",
        "after": f"if(id % 3 = 0, null, {image.format('1 + id % 4')})",
    }
    events = spark.range(30).selectExpr(*(f"{sql} as {name}" for name, sql in message.items()))
    events = events.selectExpr("*", "coalesce(after, before) as row", "before is null as lacks_before_position")
    events = events.selectExpr("*", "cast(null as string) as reason", "cast(array() as array<string>) as missing")
    events = events.selectExpr("*", "cast(null as int) as unsure")
    counts = count_events(events, layout)
    assert (counts.good, counts.deletes, counts.moves, counts.rekeyed, counts.of_a_key) == (30, 10, 5, 0, 1)
    assert count_events(events.union(events.limit(1)), layout).of_a_key == 2
    grouped = spark.sql(
        merge_sql.decisions(layout, with_floors=False, with_places=False),
        versions=spark.sql(merge_sql.versions(layout), events=events),
    )
    single = spark.sql(merge_sql.decisions_of_one(layout), events=events)
    assert single.where(merge_sql.IS_REMEMBERED).count() == counts.deletes + counts.moves
    for text in (
        merge_sql.net_rows(layout, with_floors=False),
        merge_sql.new_floors(layout).replace("current_timestamp()", "1"),
    ):
        decided = [sorted(map(str, spark.sql(text, decisions=each).collect())) for each in (grouped, single)]
        assert decided[0] == decided[1]


@pytest.mark.release
def test_a_delete_of_postgresql_without_its_row_is_known_as_such(spark: SparkSession, tmp_path: Path) -> None:
    shop = Lake(spark, tmp_path, (table("ordered", order_by=("at",)), table("parted", partition_by=BY_KIND)))
    shop.delta_engine = "spark"
    shop.ingest(*map(json.dumps, of_all_types("c", *WHOLE)))
    report = shop.ingest(*map(json.dumps, of_all_types("d", FILLED, WHOLE[1])))
    assert (report.dead_letters, shop.rows("ordered", "id"), shop.rows("parted", "id")) == (1, [(1,), (3,)], [(3,)])
    assert "let the source log full rows" in shop.dead_letters()[0][2]
