"""How ODS tables lie on disk: buckets by the size of a partition, record keys as text, and rewrites of both."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.cdc.schema import creation_contract, ods_layout
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.commits import STATE_PREFIX
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import Column
from sqlmesh_like.project.nodes import PartitionBy
from sqlmesh_like.spark.writer.rebucket import known_buckets, rebucket
from tests.spark.ingest_lake import BY_MONTH, event, report_of, table
from tests.spark.ingest_lake import Lake as IngestLake
from tests.spark.lake import ORDERS, Lake

MONTHS = (1_704_067_200_000, 1_706_745_600_000, 1_709_251_200_000)
FILE_SIZE = "hoodie.parquet.max.file.size"
BUCKETS = "hoodie.bucket.index.num.buckets"


def row(id: int, v: int = 0) -> dict[str, Any]:
    return {"id": id, "v": v, "create_time": MONTHS[id % 3], "note": f"{id * 7919 % 10007} of something {id}"}


def test_buckets_come_from_the_bytes_of_a_partition(spark: SparkSession, tmp_path: Path) -> None:
    events = [event("c", row(id)) for id in range(3000)]
    size = sum(map(len, events)) // 8 + 3000 * 24
    months: Any = {"columns": {"create_time": "timestamp"}, "unit": "millis"}
    # A file holds a quarter of a partition and some more; without partitions, as much of the whole.
    many = table("t", **months, partition_by=BY_MONTH, hudi={FILE_SIZE: str(size // 3 // 4 + 1000)})
    whole = table("whole", **months, table="t2", hudi={FILE_SIZE: str(size // 4 + 1000)})
    few = table("few", **months, table="t3", partition_by=BY_MONTH)
    asked = table("asked", **months, table="t4", hudi={BUCKETS: "3"})
    lake = IngestLake(spark, tmp_path, (many, whole, few, asked))
    lake.ingest(
        *events, *(text.replace('"table": "t"', f'"table": "{name}"') for name in ("t2", "t3", "t4") for text in events)
    )
    buckets = {name: known_buckets(Timeline(lake.uri(name))) for name in ("t", "whole", "few", "asked")}
    assert buckets == {"t": 4, "whole": 4, "few": 1, "asked": 3}
    assert len(Timeline(lake.uri()).sizes(frontier(lake))) == 12
    assert len(lake.rows("t")) == 3000


@pytest.mark.parametrize("kind", ["date", "timestamp", "string"])
def test_a_partition_is_named_as_by_the_rule_for_any_text(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    days = "'0001-01-01', '0999-12-31', '1582-10-10', '1970-01-01', '2022-05-06', '9999-12-31', '+12345-01-02', null"
    days += ", 'no day', ''" if kind == "string" else ""
    rows = spark.sql(
        f"select named_struct('at', cast(day as {kind})) as row from (select explode(array({days})) as day)"
    )
    for form in ("yyyyMM", "yyyy-MM-dd", "yyyy_MMM.dd", "y", "MMMM", "yyyyMMddHH"):
        declared = table(columns={"id": "int", "at": kind}, partition_by=PartitionBy("at", form, "part"))
        assert declared.ingest is not None
        layout = ods_layout.OdsLayout(declared, declared.ingest, (Column("id", "int"), Column("at", kind)))
        short = layout.partition("row")
        with monkeypatch.context() as patched:
            patched.setattr(ods_layout, "_SHORT_FORMAT", 0)
            long = layout.partition("row")
        names = rows.selectExpr(f"{short} as short", f"{long} as long").collect()
        assert short != long and all(each.short == each.long for each in names), (form, names)
        assert layout.may_lack_partition == any(each.short is None for each in names)


def frontier(lake: IngestLake, name: str = "t") -> str:
    newest = Timeline(lake.uri(name)).frontier
    assert newest is not None
    return newest


@pytest.mark.release
@pytest.mark.parametrize("table_type", ["cow", "mor"])
def test_a_rewrite_with_other_buckets_keeps_every_row_and_what_is_known_of_it(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    declared = table(
        table_type=table_type,
        columns={"create_time": "timestamp"},
        unit="millis",
        partition_by=BY_MONTH,
        order_by=("v",),
    )
    lake = IngestLake(spark, tmp_path, (declared,))
    lake.ingest(*(event("c", row(id, 5)) for id in range(60)))
    lake.ingest(event("u", row(3, 6), row(3, 5)), event("d", None, row(4, 7)), event("c", row(60, 1)))
    before = lake.rows()
    at, marks = frontier(lake), Timeline(lake.uri()).extra(f"{STATE_PREFIX}ingest")
    outcome = rebucket(spark, lake.uri(), {BUCKETS: "4"})
    assert outcome is not None and (outcome.buckets, outcome.files) == ((1, 4), (3, 12))
    assert (lake.rows(), frontier(lake)) == (before, at), "no row changed, so no frontier moved"
    after = Timeline(lake.uri())
    assert after.extra(f"{STATE_PREFIX}ingest") == marks and known_buckets(after) == 4
    assert rebucket(spark, lake.uri(), {BUCKETS: "4"}) is None, "it has that number now"
    # The same batch again is recognized; updates, deletes, moves and late events find their rows.
    moved = {**row(6, 9), "create_time": MONTHS[1]}
    lake.ingest(
        event("u", row(5, 8), row(5, 5)),
        event("u", moved, row(6, 5)),
        event("d", None, row(7, 9)),
        event("u", row(4, 6), row(4, 5)),
        event("u", row(8, 4), row(8, 3)),
        event("c", row(61, 1)),
    )
    rows = {
        each["id"]: each for each in (dict(zip(COLUMNS, values, strict=True)) for values in lake.rows("t", *COLUMNS))
    }
    assert len(lake.rows()) == len(rows) == 60
    assert {id: rows[id]["v"] for id in (3, 5, 6, 8, 61)} == {3: 6, 5: 8, 6: 9, 8: 5, 61: 1}
    assert not {4, 7} & rows.keys() and rows[6]["year_month"] == "202402"
    # And back to one.
    assert rebucket(spark, lake.uri(), {}) is not None
    assert known_buckets(Timeline(lake.uri())) == 1
    lake.ingest(event("u", row(5, 10), row(5, 8)))
    assert len(lake.rows()) == 60 and (5, 10) in lake.rows("t", "id", "v")


COLUMNS = ("id", "v", "year_month")


@pytest.mark.release
def test_a_batch_that_comes_again_after_a_rewrite_is_recognized(spark: SparkSession, tmp_path: Path) -> None:
    lake = IngestLake(spark, tmp_path, (table(),))
    lake.ingest(*(event("c", row(id)) for id in range(40)))
    commits = Path(lake.warehouse) / "_sml" / "checkpoints" / "shop" / "commits"
    rebucket(spark, lake.uri(), {FILE_SIZE: "1000"})
    # The query died before it noted that its batch was done.
    for done in commits.iterdir():
        done.unlink()
    assert report_of(lake.run()).replayed == 40
    assert report_of(lake.ingest(event("u", row(1, 2), row(1)))).upserts == 1
    assert len(lake.rows()) == 40


def test_a_rewrite_waits_for_a_commit_that_was_cut_short(spark: SparkSession, tmp_path: Path) -> None:
    lake = IngestLake(spark, tmp_path, (table(),))
    lake.ingest(*(event("c", row(id)) for id in range(40)))
    timeline = Path(lake.uri()) / ".hoodie" / "timeline"
    pending = timeline / "99990101000000000.commit.requested"
    pending.touch()
    with pytest.raises(RetryableError, match="cut short"):
        rebucket(spark, lake.uri(), {FILE_SIZE: "1000"})
    pending.unlink()
    at = frontier(lake)
    outcome = rebucket(spark, lake.uri(), {BUCKETS: "4"})
    assert outcome is not None and outcome.buckets == (1, 4)
    assert (len(lake.rows()), frontier(lake)) == (40, at), "no row changed, so no frontier moved"
    assert report_of(lake.ingest(event("u", row(1, 2), row(1)), event("d", None, row(2)))).upserts == 1
    assert len(lake.rows()) == 39


def order(id: int, buyer: int, amount: int, month: str) -> tuple[object, ...]:
    return (id, buyer, Decimal(amount), "x", month)


@pytest.mark.release
def test_models_follow_the_change_across_rewrites_of_their_inputs_and_of_themselves(lake: Lake) -> None:
    orders = lake.source("orders", ORDERS, partition="ym")
    lake.model("flat", "{{ config(partition_by='ym') }} select id, buyer, amount * 2 as twice, ym from @orders")
    lake.model("spent", "select buyer, sum(twice) as total, count(*) as n from {{ ref('flat') }} group by buyer")
    orders.write(*(order(id, id % 7, id, f"m{id % 3}") for id in range(90)))
    lake.run_well()
    small = {FILE_SIZE: "2000"}
    assert rebucket(lake.spark, lake.uri("flat"), small) is not None
    assert lake.run_well() == {"flat": "no_op", "spent": "no_op"}
    # A rewrite right after what a consumer has read, and one between two changes.
    orders.upsert(order(1, 1, 100, "m1"), order(200, 2, 5, "m9"), delete=[order(2, 2, 2, "m2")])
    assert lake.run_well() == {"flat": "row_based", "spent": "aggregate_merge"}
    lake.assert_maintained()
    orders.upsert(order(3, 3, 100, "m0"))
    assert lake.run_well("flat") == {"flat": "row_based"}
    assert rebucket(lake.spark, lake.uri("flat"), {}) is not None
    orders.upsert(order(4, 3, 100, "m1"), delete=[order(5, 5, 5, "m2")])
    assert lake.run_well() == {"flat": "row_based", "spent": "aggregate_merge"}
    lake.assert_maintained()
    assert rebucket(lake.spark, lake.uri("spent"), {FILE_SIZE: "400"}) is not None
    orders.upsert(order(6, 3, 100, "m0"))
    assert lake.run_well() == {"flat": "row_based", "spent": "aggregate_merge"}
    lake.assert_maintained()


TEXTS = (
    "a",
    "a|b",
    "a%7Cb",
    "a:b,c",
    "b,c:d:e",
    "NULL",
    "null",
    "%0",
    "%",
    "__null__",
    "__empty__",
    "ü %20",
    "a|",
    "|",
)


def test_record_keys_are_texts_that_no_two_primary_keys_share(spark: SparkSession, tmp_path: Path) -> None:
    lake = IngestLake(spark, tmp_path, (table(primary_key=("a", "b"), hudi={BUCKETS: "3"}),))
    keys = [(a, b) for a in TEXTS for b in TEXTS]
    lake.ingest(*(event("c", {"a": a, "b": b, "v": 1}) for a, b in keys))
    lake.ingest(*(event("u", {"a": a, "b": b, "v": 2}, {"a": a, "b": b, "v": 1}) for a, b in keys))
    assert lake.rows("t", "a", "b", "v") == sorted(((a, b, 2) for a, b in keys), key=str)
    stored = {key for (key,) in lake.rows("t", "_sml_key")}
    assert len(stored) == len(keys) and not any(":" in key or "," in key for key in stored)
    pairs = "(cast(null as string), 'x'), ('NULL', 'x'), ('%0', 'x'), ('', 'x')"
    frame = spark.sql(f"select {_parts()} as k from values {pairs} as t(a, b)")
    assert len({row["k"] for row in frame.collect()}) == 4, "a NULL is no text"


def _parts() -> str:
    from sqlmesh_like.names import Column

    declared = table(primary_key=("a", "b"))
    assert declared.ingest is not None
    return ods_layout.OdsLayout(declared, declared.ingest, (Column("a", "string"), Column("b", "string"))).record_key(
        "t"
    )


def test_a_table_of_an_earlier_version_keeps_its_hashed_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = IngestLake(spark, tmp_path, (table(),))
    with monkeypatch.context() as earlier:
        earlier.setattr(creation_contract, "TEXT_KEYS", ods_layout.HASHED_KEYS)
        lake.ingest(event("c", row(1)), event("c", row(2)))
    hashed = lake.rows("t", "_sml_key")
    assert all(len(key) == 64 for (key,) in hashed)
    lake.ingest(event("u", row(1, 5), row(1)), event("d", None, row(2)), event("c", row(3)))
    assert lake.rows("t", "id", "v") == [(1, 5), (3, 0)]
    assert all(len(key) == 64 for (key,) in lake.rows("t", "_sml_key"))
