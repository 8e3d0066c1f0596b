"""Rows of merge-on-read tables without Hudi's reader are those that it shows, at each frontier.

By base files and change logs, in Spark and in DuckDB; where there are no change logs, by hudi-rs, which merges log
files.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal as D
from functools import partial
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.duckdb.exact_sql import Unproven
from sqlmesh_like.duckdb.merge_on_read_files import LocalMergedTable, local_table
from sqlmesh_like.duckdb.merged_slices import MergedSlices
from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.reading.rows_plan import Overlay, SliceMerge
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.names import KEY, WEIGHT
from sqlmesh_like.project.nodes import PartitionBy
from sqlmesh_like.spark.change_feed.mor_change_feed import MergeOnReadFeed
from sqlmesh_like.spark.tables.cleaner import clean_history
from tests.spark.ingest_lake import BY_MONTH, event
from tests.spark.ingest_lake import Lake as IngestLake
from tests.spark.ingest_lake import table as ingested
from tests.spark.lake import COMPACT, Lake

COLUMNS = "id int, amount decimal(12,2), price double, note string, day date, at timestamp, ym string"
NOTES = ("", "ü", "a'b", None, "x" * 300, "😀")


def row(random_: random.Random, id: int) -> tuple[object, ...]:
    import datetime

    day = datetime.date(1969, 12, 30) + datetime.timedelta(days=random_.randrange(20_000))
    at = datetime.datetime(2020, 1, 1, 1, 2, 3, random_.randrange(1_000_000))
    amount = random_.choice((None, D("0.00"), D("-1.50"), D("9999999999.99")))
    price = random_.choice((None, 0.1, -2.5, 1e300, float("nan")))
    return (
        id,
        amount,
        price,
        random_.choice(NOTES),
        random_.choice((None, day)),
        random_.choice((None, at)),
        f"m{id % 3}",
    )


def read_here(uri: str, merged: MergedSlices) -> LocalMergedTable:
    table = local_table(LakeHistory().state(uri), merged, hidden=False)
    assert isinstance(table, LocalMergedTable)
    return table


def counted(rows: list[tuple[object, ...]]) -> Counter[str]:
    return Counter(map(repr, rows))


@pytest.mark.release
@pytest.mark.parametrize("start", [1, 2])
def test_each_frontier_and_each_change_is_what_hudis_reader_shows(
    start: int, spark: SparkSession, tmp_path: Path
) -> None:
    random_, merged = random.Random(start), MergedSlices()
    table = Lake(spark, tmp_path).source("t", COLUMNS, partition="ym", buckets=2, table_type="mor")
    frontiers = [table.write(*(row(random_, id) for id in range(12)), operation="bulk_insert")]
    for number in range(5):
        ids = random_.sample(range(16), 6)
        gone = [(id, *[None] * 5, f"m{id % 3}") for id in ids[:2]]
        options = COMPACT if number == 2 else {}
        frontiers.append(table.upsert(*(row(random_, id) for id in ids[2:]), delete=gone, **options))
    merges = 0
    with duckdb.connect() as db:
        db.execute("set TimeZone = 'UTC'")
        here = read_here(table.uri, merged)
        names = [column.name for column in here.schema]
        for number, frontier in enumerate(frontiers):
            shown = ", ".join(f'"{name}"' for name in names)
            try:
                rows = db.execute(f"select {shown} from ({here.rows(frontier)})").fetchall()
            except Unproven as error:
                if "log files alone" not in str(error):
                    raise
                continue
            expected = table.feed().current(frontier).select(*names).collect()
            assert counted(rows) == counted([tuple(r) for r in expected]), frontier
            merges += 1
            if number:
                span = frontiers[number - 1], frontier
                change = db.execute(f"select {shown}, {WEIGHT} from ({here.change(*span)})").fetchall()
                signed = table.feed().changes(*span).select(*names, WEIGHT).collect()
                assert _netted(change) == _netted([tuple(r) for r in signed]), span
    merged.forget()
    assert merges >= 3 and KEY in names


def _netted(rows: list[tuple[object, ...]]) -> Counter[str]:
    weights: Counter[str] = Counter()
    for *values, weight in rows:
        weights[repr(values)] += int(str(weight))
    return Counter({key: weight for key, weight in weights.items() if weight})


TYPES = {"id": "int", "m": "int", "at": "timestamp", "note": "string"}


def happened(dice: random.Random, rows: dict[int, dict[str, object]], numbers: range, more: bool) -> list[str]:
    """Events of a table whose `rows` are kept: inserts, updates, moves to other months, deletes, new keys."""
    lines = []
    for m in numbers:
        id = dice.randrange(14)
        at = f"2022-{dice.randint(1, 3):02d}-01T00:00:00Z"
        before, after = rows.get(id), {"id": id, "m": m, "at": at, "note": dice.choice([None, "a", "ü"])}
        after |= {"extra": m * 2} if more else {}
        if before is not None and dice.random() < 0.35:
            lines.append(event("d", None, {**rows.pop(id), "m": m}))
        else:
            rows[id] = after
            lines.append(event("c" if before is None else "u", after, before if dice.random() < 0.5 else None))
    return lines


@pytest.mark.release
@pytest.mark.parametrize(("order", "by"), [((), BY_MONTH), ((), None), (("m",), BY_MONTH)])
def test_base_files_with_the_change_logs_since_are_what_hudis_reader_shows(
    spark: SparkSession, tmp_path: Path, order: tuple[str, ...], by: PartitionBy | None
) -> None:
    dice, rows = random.Random(repr((order, by))), dict[int, dict[str, object]]()
    partition = replace(by, column="at") if by else None
    declared = ingested(columns=TYPES, order_by=order, partition_by=partition, table_type="mor")
    shop, lake = IngestLake(spark, tmp_path, (declared,)), Lake(spark, tmp_path, fresh=False)
    is_long = not order and by is not None
    for number in range(7 if is_long else 4):
        first = number * 20
        shop.ingest(*happened(dice, rows, range(first, first + (12 if number else 8)), more=number >= 3))
        if number in (1, 4):
            lake.compaction(shop.uri(), "schedule")
            lake.compaction(shop.uri(), "run")
    assert require_same_rows(spark, shop.uri()) >= 3
    if is_long:  # commits before the last compaction are archived, and the files of some stay the newest
        clean_history(spark, shop.uri(), 2)
        assert Timeline(shop.uri()).is_archived
        assert require_same_rows(spark, shop.uri()) >= 2
    assert sorted(shop.rows("t", "id", "m")) == sorted((each["id"], each["m"]) for each in rows.values())


def keep(db: duckdb.DuckDBPyConnection, frontier: str, query: str) -> str:
    """A table of the rows of a query, as a run keeps it for its models."""
    name = f"kept_{frontier}_{len(db.execute('show tables').fetchall())}"
    db.execute(f"create table {name} as {query}")
    return name


class _NothingMerged(MergedSlices):
    """Change logs are read as they are: nothing is left for hudi-rs to merge."""

    def path(self, timeline: Timeline, base: str, logs: tuple[str, ...]) -> str:
        raise AssertionError(f"merged {base} with {logs}")


def require_same_rows(spark: SparkSession, uri: str) -> int:
    """At each frontier Spark and DuckDB read what Hudi's reader shows; how many change logs they read."""
    timeline, merged, logs = Timeline(uri), _NothingMerged(), 0
    feed, here = MergeOnReadFeed(spark, timeline), read_here(uri, merged)
    with duckdb.connect() as db:
        db.execute("set TimeZone = 'UTC'")
        for frontier in [commit.instant.frontier for commit in timeline.data_commits]:
            try:
                logged = feed.current(frontier)
            except RetryableError:
                continue  # its files were cleaned
            hudis = SliceMerge(timeline.as_of(frontier), "Hudi's reader is what the others are compared with")
            known = feed._rows(hudis, feed.schema(frontier))
            columns = logged.columns
            expected = counted([tuple(r) for r in known.select(*columns).collect()])
            assert counted([tuple(r) for r in logged.collect()]) == expected, frontier
            names = [column.name for column in here.schema]
            quoted = ", ".join(f'"{name}"' for name in names)
            same = [name if name in columns else f"null as {name}" for name in names]
            expected = counted([tuple(r) for r in known.selectExpr(*same).collect()])
            kept = partial(keep, db, frontier)
            for query in (here.rows(frontier), here.shared_rows(frontier, kept), here.shared_rows(frontier, kept)):
                assert counted(db.execute(f"select {quoted} from ({query})").fetchall()) == expected, frontier
            source = here.rows_plan(frontier).source
            logs += len(source.logs) if isinstance(source, Overlay) else 0
    return logs
