"""Change logs of commits: they say what comparing file slices says, and where one is in doubt slices are compared."""

from __future__ import annotations

import json
import logging
import random
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import fastavro
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi import change_log
from sqlmesh_like.hudi import timeline as timeline_module
from sqlmesh_like.hudi.change_log import FOLDER, NotLoggedError, log_of, remove_logs
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import IS_DELETED
from sqlmesh_like.spark.change_feed.change_feed import change_feed
from sqlmesh_like.spark.change_feed.cow_change_feed import CopyOnWriteFeed
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.levels import parametrize
from tests.spark.ingest_lake import BY_MONTH, event, report_of, table
from tests.spark.ingest_lake import Lake as IngestLake
from tests.spark.lake import ORDERS, Lake, signed
from tests.spoilt_logs import SPOILT, Spoil

PARTS = replace(BY_MONTH, column="at")
TYPES = {"id": "int", "m": "int", "at": "timestamp", "note": "string"}

Row = dict[str, object]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    """Spark finds the changes, whose logs are tested here, also of small tables."""
    return Lake(spark, tmp_path, delta_engine="spark")


@pytest.fixture(autouse=True)
def logs_of_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "LOGGED_FROM_BYTES", 0)


def row(id: int, m: int, month: int, note: str | None = None) -> Row:
    return {"id": id, "m": m, "at": f"2022-{month:02d}-01T00:00:00Z", "note": note}


def feed(spark: SparkSession, uri: str) -> CopyOnWriteFeed:
    return change_feed(spark, Timeline(uri))


def frontiers(uri: str) -> list[str]:
    return [commit.instant.frontier for commit in Timeline(uri).data_commits]


def require_logged_as_compared(spark: SparkSession, uri: str, since: int = 0) -> int:
    """Each commit from the given one on, and all of them together, have the same change by logs and by slices.

    How many ranges these are.
    """
    known = frontiers(uri)[since:]
    ranges = sorted({*pairwise(known), (known[0], known[-1])})
    for start, end in ranges:
        require_same(spark, uri, start, end)
    return len(ranges)


def require_same(spark: SparkSession, uri: str, start: str, end: str) -> None:
    logged = signed(feed(spark, uri).logged_changes(start, end))
    assert logged == signed(feed(spark, uri).compared_changes(start, end)), (uri, start, end)


def happened(dice: random.Random, rows: dict[int, Row], numbers: Iterable[int]) -> list[str]:
    """Events of a source's table, whose `rows` are kept: inserts, updates, moves, deletes, new keys, the same again."""
    lines: list[str] = []
    for m in numbers:
        id = dice.randrange(12)
        before, after = rows.get(id), row(id, m, dice.randint(1, 3), dice.choice([None, "a", "ü"]))
        if before is None:
            rows[id] = after
            lines.append(event("c", after))
        elif dice.random() < 0.3:
            lines.append(event("d", None, {**rows.pop(id), "m": m}))
        elif dice.random() < 0.2 and (other := dice.randrange(12)) not in rows:
            lines.append(event("u", {**after, "id": other}, {**rows.pop(id), "m": m}))
            rows[other] = {**after, "id": other}
        else:
            rows[id] = after if dice.random() < 0.7 else {**before, "m": m}
            lines.append(event("u", rows[id], before))
    return lines


@parametrize(("kind", "order"), suite=[("cow", ("m",))], release=[("cow", ()), ("mor", ()), ("mor", ("m",))])
def test_logs_of_an_ingested_table_say_what_its_slices_say(
    spark: SparkSession, tmp_path: Path, kind: Literal["cow", "mor"], order: tuple[str, ...]
) -> None:
    dice = random.Random(f"{kind} {order}")
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES, order_by=order, partition_by=PARTS, table_type=kind),))
    rows: dict[int, Row] = {}
    lines = [happened(dice, rows, range(first, first + 9)) for first in (1, 11, 21, 31)]
    if order:  # events that come too late lose
        late = lines[1].pop(2), lines[1].pop(2)
        lines[2] += late
    for number, batch in enumerate(lines):
        shop.ingest(*batch)
        if kind == "mor" and number == 2:
            Lake(spark, tmp_path, fresh=False).compaction(shop.uri(), "schedule")
            Lake(spark, tmp_path, fresh=False).compaction(shop.uri(), "run")
    assert require_logged_as_compared(spark, shop.uri()) == 4
    logs = [log_of(commit) for commit in Timeline(shop.uri()).data_commits[1:]]
    assert all(log.rows for log in logs)
    assert sorted(shop.rows("t", "id", "m")) == sorted((each["id"], each["m"]) for each in rows.values())


def test_an_upsert_of_no_effect_has_a_log_without_a_file(spark: SparkSession, tmp_path: Path) -> None:
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES, order_by=("m",)),))
    shop.ingest(event("c", row(1, 5, 1)))
    shop.ingest(event("u", row(1, 3, 1)))  # late
    (log,) = [log_of(commit) for commit in Timeline(shop.uri()).data_commits[1:]]
    assert (log.rows, log.files) == (0, ())
    assert require_logged_as_compared(spark, shop.uri()) == 1


@pytest.mark.release
def test_columns_added_between_commits_are_filled(spark: SparkSession, tmp_path: Path) -> None:
    shop = IngestLake(spark, tmp_path, (table(),))
    shop.ingest(event("c", {"id": 1, "v": 1}), event("c", {"id": 2, "v": 2}))
    shop.ingest(event("u", {"id": 1, "v": 10}, {"id": 1, "v": 1}))
    shop.ingest(event("u", {"id": 1, "v": 11, "extra": "x"}), event("d", None, {"id": 2, "v": 2}))
    shop.ingest(event("u", {"id": 1, "v": 11, "extra": "y"}))
    assert require_logged_as_compared(spark, shop.uri()) == 4
    assert "extra" in shop.types()


MODELS = {
    "sums": "select city, sum(amount) as total, count(*) as n from @orders group by city",
    "people": "select distinct buyer, city from @orders",
    "joined": "select o.id, o.amount, u.name from @orders o join @users u on o.buyer = u.id",
    "outer_": "select u.id, u.name, o.amount from @users u left join @orders o on o.buyer = u.id",
    "shares": "select buyer, avg(cast(amount as double)) as mean from @orders group by buyer",
    "moving": "{{ config(partition_by='city') }} select id, city, amount from @orders",
    "appended": "{{ config(table_type='mor') }} select id, city, amount from @orders",
}


FOLLOWED = {"row_based", "aggregate_merge", "group_recompute"}


@pytest.mark.release
def test_logs_of_derived_tables_say_what_their_slices_say(lake: Lake) -> None:
    orders = lake.source("orders", ORDERS, partition="ym")
    users = lake.source("users", "id int, name string")
    for name, sql in MODELS.items():
        lake.model(name, sql)
    lake.model("above", "select total, count(*) as n from {{ ref('sums') }} group by total")
    first = [(n, n % 4, Decimal(n * 2), "a" if n % 2 else "b", "m1") for n in range(1, 9)]
    orders.upsert(*first)
    users.upsert((1, "ann"), (2, "bob"), (9, "cy"))
    lake.run_well()
    orders.upsert((1, 1, Decimal(50), "b", "m1"), (20, 9, Decimal(7), "c", "m2"), delete=[first[1], first[2]])
    taken = lake.run_well()
    orders.upsert(first[2], (4, 0, Decimal(3), "a", "m1"), delete=[(20, 9, Decimal(7), "c", "m2")])
    users.upsert((2, "BOB"), delete=[(9, "cy")])
    lake.run_well()
    lake.assert_maintained()
    followed = [name for name in MODELS if taken[name] in FOLLOWED]
    assert len(followed) >= 6, taken
    assert require_logged_as_compared(lake.spark, lake.uri("sums")) == 3
    for name in followed:
        known = frontiers(lake.uri(name))
        assert len(known) == 3, name
        require_same(lake.spark, lake.uri(name), known[0], known[-1])
        assert all(log_of(commit).rows for commit in lake.timeline(name).data_commits[1:])
    assert require_logged_as_compared(lake.spark, lake.uri("above")) >= 1
    known = frontiers(lake.uri("sums"))
    change = LakeHistory().change(lake.uri("sums"), known[0], known[-1])
    assert change.compared is None and 0 < change.read < 2 * change.bytes


def _rewritten(uri: str, frontier: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Another record of its log in the metadata of a commit."""
    (path,) = [p for p in (Path(uri) / ".hoodie/timeline").glob(f"{frontier}.*") if not p.name.endswith(".crc")]
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        schema, records = reader.writer_schema, list(reader)
    log = json.loads(records[0]["extraMetadata"]["sml.change_log"])
    change(log)
    records[0]["extraMetadata"]["sml.change_log"] = json.dumps(log)
    with path.open("wb") as target:
        fastavro.writer(target, schema, records)
    timeline_module._table_commits.cache_clear()


@pytest.mark.release
def test_a_log_in_doubt_is_not_read_and_it_is_said(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES, order_by=("m",)),))
    shop.ingest(*[event("c", row(id, 1, 1)) for id in (1, 2, 3)])
    shop.ingest(event("u", row(1, 2, 1)), event("d", None, row(2, 2, 1)))
    shop.ingest(event("u", row(1, 3, 1)), event("c", row(4, 3, 1)))
    whole = Path(shop.uri())
    start, middle, end = frontiers(shop.uri())
    expected = signed(feed(spark, shop.uri()).compared_changes(start, end))
    assert signed(feed(spark, shop.uri()).logged_changes(start, end)) == expected
    for name, (spoil, why) in SPOILT.items():
        copy = tmp_path / name.replace(" ", "_")
        shutil.copytree(whole, copy)
        (log,) = log_of(Timeline(str(copy)).data_commits[1]).files

        def spoilt(record: dict[str, Any], copy: Path = copy, path: str = log.path, spoil: Spoil = spoil) -> None:
            spoil(copy / path, record)

        _rewritten(str(copy), middle, spoilt)
        with pytest.raises(NotLoggedError, match=why):
            feed(spark, str(copy)).logged_changes(start, end)
        with caplog.at_level(logging.INFO, "sqlmesh_like.spark"):
            assert signed(feed(spark, str(copy)).changes(start, end)) == expected, name
        assert "file slices are compared" in caplog.text and why in caplog.text
        caplog.clear()
        # The commit after it chains all the same.
        assert signed(feed(spark, str(copy)).logged_changes(middle, end))


@pytest.mark.release
@parametrize("kind", suite=["cow"], release=["mor"])
def test_commits_of_others_in_between_are_compared(
    spark: SparkSession, tmp_path: Path, kind: Literal["cow", "mor"]
) -> None:
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES, table_type=kind),))
    shop.ingest(*[event("c", row(id, 1, 1)) for id in (1, 2, 3)])
    shop.ingest(event("u", row(1, 2, 1)))
    # As another team would: an update of SQL, which knows nothing of logs.
    stored = spark.read.format("hudi").load(shop.uri()).where("id = 2")
    changed = stored.selectExpr(
        *[c if c != "note" else "'theirs' as note" for c in stored.columns if c[:8] != "_hoodie_" or c == IS_DELETED]
    )
    options = {
        "hoodie.table.name": "t", "hoodie.datasource.write.operation": "upsert", "hoodie.metadata.enable": "false",
        "hoodie.datasource.write.recordkey.field": "_sml_key", "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1", "hoodie.clean.automatic": "false",
        "hoodie.datasource.write.table.type": {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind],
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    }  # fmt: skip
    changed.write.format("hudi").options(**options).mode("append").save(shop.uri())
    shop.ingest(event("u", row(3, 3, 1)), event("d", None, row(1, 3, 1)))
    first, second, theirs, last = frontiers(shop.uri())
    assert require_logged_as_compared(spark, shop.uri(), since=2) == 1
    changes = feed(spark, shop.uri())
    for pair in [(first, last), (second, theirs), (second, last)]:
        with pytest.raises(NotLoggedError, match="has no change log"):
            changes.logged_changes(*pair)
        assert signed(changes.changes(*pair)) == signed(changes.compared_changes(*pair))
    assert [(each[0], each[4]) for each in signed(changes.changes(second, theirs))] == [(-1, None), (1, "theirs")]
    change = LakeHistory().change(shop.uri(), first, last)
    assert change.compared == f"commit {theirs.split('_')[0]} has no change log"
    assert LakeHistory().change(shop.uri(), first, second).compared is None


@pytest.mark.release
def test_tables_of_before_get_logs_from_their_next_commit_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES),))
    with monkeypatch.context() as before:
        before.setattr(change_log, "LOGGED_FROM_BYTES", 10_000_000)
        shop.ingest(event("c", row(1, 1, 1)), event("c", row(2, 1, 1)))
        shop.ingest(event("u", row(1, 2, 1)))
    shop.ingest(event("d", None, row(1, 3, 1)), event("u", row(2, 3, 1)))
    first, old, new = frontiers(shop.uri())
    assert require_logged_as_compared(spark, shop.uri(), since=1) == 1
    changes = feed(spark, shop.uri())
    assert signed(changes.changes(first, new)) == signed(changes.compared_changes(first, new))
    with pytest.raises(NotLoggedError, match=old.split("_")[0]):
        changes.logged_changes(first, new)


@pytest.mark.release
def test_logs_go_with_their_commits_and_left_ones_after_a_day(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES, order_by=("m",)),))
    for m in range(1, 9):
        shop.ingest(event("c" if m < 3 else "u", row(m % 2, m, 1)))
    logs = Path(shop.uri()) / FOLDER
    assert len(list(logs.iterdir())) == 7

    def crash(*_: object, **__: object) -> None:
        raise NodeError("no space left")

    with monkeypatch.context() as crashing:
        crashing.setattr("sqlmesh_like.hudi.writer.open_commit.OpenCommit.complete", crash)
        assert report_of(shop.ingest(event("u", row(1, 99, 1)))).error == "no space left"
    assert len(list(logs.iterdir())) == 8, "written before the commit, which never came"
    kept = frontiers(shop.uri())[-3:]
    before = signed(feed(spark, shop.uri()).changes(kept[0], kept[-1]))
    assert remove_logs(Timeline(shop.uri())) == 0, "it may be under way"
    clean_history(spark, shop.uri(), retain=3)
    remove_logs(Timeline(shop.uri()))
    named = {file.path.split("/")[2] for commit in Timeline(shop.uri()).data_commits for file in log_of(commit).files}
    left = {path.name for path in logs.iterdir()}
    assert named < left and len(left - named) == 1 and len(left) < 8
    assert remove_logs(Timeline(shop.uri()), datetime.now(UTC) + timedelta(hours=25)) == 1
    assert {path.name for path in logs.iterdir()} == named
    assert signed(feed(spark, shop.uri()).logged_changes(kept[0], kept[-1])) == before
    shop.run()
    assert shop.rows("t", "id", "m") == [(0, 8), (1, 99)], "the batch of the crash is ingested"
    assert require_logged_as_compared(spark, shop.uri(), since=-3) == 3


@pytest.mark.release
def test_small_tables_have_no_logs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "LOGGED_FROM_BYTES", 10_000_000)
    shop = IngestLake(spark, tmp_path, (table(columns=TYPES),))
    shop.ingest(event("c", row(1, 1, 1)))
    shop.ingest(event("u", row(1, 2, 1)))
    assert not (Path(shop.uri()) / FOLDER).exists()
    assert [weight for weight, *_ in signed(feed(spark, shop.uri()).changes(*frontiers(shop.uri())))] == [-1, 1]


def test_other_readers_see_the_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi's reader and hudi-rs, which has no JVM."""
    from hudi import HudiTableBuilder

    shop = IngestLake(spark, tmp_path, (table(columns=TYPES),))
    shop.ingest(event("c", row(1, 1, 1)), event("c", row(2, 1, 1)))
    shop.ingest(event("u", row(1, 2, 1)))
    assert list((Path(shop.uri()) / FOLDER).iterdir())
    assert shop.rows("t", "id", "m") == [(1, 2), (2, 1)]
    batches = HudiTableBuilder.from_base_uri(shop.uri()).build().read()
    assert sorted((r["id"], r["m"]) for batch in batches for r in batch.to_pylist()) == [(1, 2), (2, 1)]
