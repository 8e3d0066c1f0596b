"""Commits that are written without Spark leave what Hudi's own would: rows, changes, and a table it goes on with.

Each table has a twin that Hudi's writer alone writes; both get the same random batches.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal as D
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sqlmesh_like.errors import RetryableError
from sqlmesh_like.hudi.change_log import logged_columns, logs_between
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.writer import upsert as local_writer
from sqlmesh_like.hudi.writer.arrow_schema import UnsupportedRowsError, file_schema
from sqlmesh_like.hudi.writer.bucket_hash import bucket_of
from sqlmesh_like.hudi.writer.commit_encoding import Action
from sqlmesh_like.hudi.writer.new_table import NewTable, table_schema
from sqlmesh_like.hudi.writer.open_commit import OpenCommit, open_commit, settled_timeline
from sqlmesh_like.hudi.writer.partition_names import partition_names
from sqlmesh_like.hudi.writer.table_support import unsupported_reason
from sqlmesh_like.hudi.writer.upsert import Upsert, UpsertResult, upsert
from sqlmesh_like.names import HUDI_COLUMNS, IS_DELETED, WEIGHT, Column
from sqlmesh_like.spark.frames.cached_frame import cached
from sqlmesh_like.spark.frames.partition_paths import partition_path
from sqlmesh_like.spark.tables.cleaner import clean_history
from sqlmesh_like.spark.writer import local_commit
from tests.levels import parametrize
from tests.spark.lake import Lake, Table

COLUMNS = (
    "_sml_key string, amount decimal(12,2), wide decimal(30,5), price double, note string, day date, at timestamp,"
    " n bigint, flag boolean, raw binary, ym string, _sml_order_0 bigint, _sml_position string"
)
Row = tuple[object, ...]


def row(dice: random.Random, id: int, version: int, month: int) -> Row:
    at = dt.datetime(1969, 12, 31, 1, 2, 3, dice.randrange(10**6)) + dt.timedelta(days=dice.randrange(30_000))
    return (
        f"k{id}ü" if id % 7 == 0 else f"k{id}",
        dice.choice((None, D("0.00"), D("-1.50"), D("9999999999.99"))),
        dice.choice((None, D("1.00001"), D("-" + "9" * 25 + ".99999"))),
        dice.choice((None, 0.1, -2.5, 1e300, float("nan"))),
        dice.choice(("", "ü", "a'b", None, "x" * 300, "😀")),
        dice.choice((None, at.date())),
        dice.choice((None, at)),
        dice.choice((None, 2**60)),
        dice.choice((None, True)),
        dice.choice((None, b"\x00\xff")),
        f"2022{month:02d}",
        version,
        f"file|{version:06d}",
    )


def written_here(table: Table, upserts: Sequence[Row], deletes: Sequence[Row]) -> UpsertResult:
    """The batch as a commit of our own writer."""
    timeline, layout = settled_timeline(table.uri), table.layout
    assert unsupported_reason(timeline, layout.ordering, layout.partition_field, {}) is None
    avro = timeline.schema_json(table.frontier())
    assert avro is not None
    schema = pa.schema([field for field in file_schema(avro) if field.name not in HUDI_COLUMNS])
    values = list(zip(*[(*r, False) for r in upserts], *[(*r, True) for r in deletes], strict=True))
    rows = pa.table([pa.array(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema)
    columns = LakeHistory().state(table.uri).stored
    return upsert(
        Upsert(
            timeline, table.frontier(), rows, layout.buckets, {"by": "us"}, layout.partition_field, layout.ordering,
            columns,
        )
    )  # fmt: skip


def shown(table: Table) -> Counter[str]:
    """The rows that Hudi's own reader shows."""
    frame = table.lake.spark.read.format("hudi").load(table.uri)
    names = [name for name in frame.columns if name not in HUDI_COLUMNS]
    return Counter(repr(tuple(r)) for r in frame.select(*[f"`{name}`" for name in names]).collect())


def change(table: Table, since: str) -> Counter[str]:
    frame = table.feed().changes(since, table.frontier())
    weights: Counter[str] = Counter()
    for r in frame.collect():
        values = r.asDict()
        weights[repr(sorted(values.items(), key=lambda item: item[0]))] += 0
        weight = values.pop(WEIGHT)
        weights[repr(sorted(values.items()))] += weight
    return Counter({text: weight for text, weight in weights.items() if weight})


def counts(table: Table) -> tuple[int, int, int]:
    writes = table.timeline.data_commits[-1].writes
    return sum(w.inserts for w in writes), sum(w.updates for w in writes), sum(w.deletes for w in writes)


def places(table: Table) -> dict[tuple[str, str], str]:
    """Where rows stand, and since which commit."""
    rows = table.lake.spark.read.format("hudi").load(table.uri)
    columns = ("_sml_key", "_hoodie_partition_path", "_hoodie_commit_time")
    return {(key, path): instant for key, path, instant in rows.select(*columns).collect()}


def test_structs_are_written_as_hudi_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    """Also into a table of Spark's, whose structs and fields have no NULL where the query says so."""
    lake, type_ = Lake(spark, tmp_path), "struct<a:int,B:struct<c:decimal(22,2),at:timestamp>>"
    ours, twin = (lake.source(name, f"_sml_key string, s {type_}", ("_sml_key",)) for name in ("ours", "twin"))
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 1)
    rows = [("a", (1, (D("1.50"), moment))), ("b", None), ("c", (None, None)), ("d", (2, (None, None)))]
    twin.write(*rows, operation="bulk_insert")
    made = NewTable(ours.uri, ours.layout.name, (Column("_sml_key", "string"), Column("s", type_)))
    fields = file_schema(table_schema(made)).field("s").type
    values = [s and {"a": s[0], "B": s[1] and dict(zip(("c", "at"), s[1], strict=True))} for _, s in rows]
    made.write(pa.table({"_sml_key": [key for key, _ in rows], "s": pa.array(values, fields)}), {"by": "us"})
    schemas = [json.loads((table.timeline.schema_json(table.frontier()) or "").replace(table.layout.name, "x"))
               for table in (ours, twin)]  # fmt: skip
    assert schemas[0]["fields"][1] == schemas[1]["fields"][1] and shown(ours) == shown(twin)
    since, more = (ours.frontier(), twin.frontier()), [("a", None), ("b", (3, (D("2.00"), None)))]
    for table in (ours, twin):
        table.upsert(*more, delete=[("d", rows[3][1])])
    assert shown(ours) == shown(twin) and change(ours, since[0]) == change(twin, since[1])
    for table in (ours, twin):
        written_here(table, [("a", {"a": 7, "B": {"c": D("-1.00"), "at": moment}}), ("e", None)], [("c", None)])
    assert shown(ours) == shown(twin) and change(ours, since[0]) == change(twin, since[1])


@pytest.mark.release
def test_structs_that_spark_built_are_followed_without_it(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    table = lake.source("t", "id int, n tinyint, d decimal(10,2), x double")
    table.upsert((1, 2, D("1.50"), -0.0), (2, None, None, None))
    lake.model("m", "select id, struct(id, 1 as one, d) as s, case when id > 1 then struct(n, x) end as p from @t")
    lake.model("g", "select s.one, count(p) as n, max_by(s, id) as last from {{ ref('m') }} group by s.one")
    assert set(lake.run_well().values()) == {"full_refresh"}
    lake.assert_maintained()
    table.upsert((1, 3, None, 0.5), (3, 1, D("2.00"), float("nan")), delete=[(2, None, None, None)])
    assert lake.run_well() == {"m": "row_based", "g": "aggregate_merge"}
    lake.assert_maintained()


def test_arrays_are_written_as_hudi_writes_them(spark: SparkSession, tmp_path: Path) -> None:
    """Empty ones, NULL, and NULL within; and elements without NULL where Spark built the table so."""
    lake, type_ = Lake(spark, tmp_path), "array<struct<c:decimal(22,2),at:timestamp,more:array<int>>>"
    columns = f"_sml_key string, v {type_}, d array<decimal(10,2)>"
    ours, twin = (lake.source(name, columns, ("_sml_key",)) for name in ("ours", "twin"))
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 1)
    rows: list[Row] = [
        ("a", [(D("1.50"), moment, [1, None])], [D("1.00"), None]), ("b", None, None), ("c", [], []),
        ("d", [None, (None, None, None), (None, None, [])], [None]),
    ]  # fmt: skip
    twin.write(*rows, operation="bulk_insert")
    made = NewTable(ours.uri, ours.layout.name, tuple(Column(*c.split(" ")) for c in columns.split(", ")))
    schema = file_schema(table_schema(made))
    arrays = pa.array([_items(r[1]) for r in rows], schema.field("v").type)
    decimals = pa.array([r[2] for r in rows], schema.field("d").type)
    made.write(pa.table({"_sml_key": [r[0] for r in rows], "v": arrays, "d": decimals}), {"by": "us"})
    schemas = [json.loads((table.timeline.schema_json(table.frontier()) or "").replace(table.layout.name, "x"))
               for table in (ours, twin)]  # fmt: skip
    assert schemas[0]["fields"][1:3] == schemas[1]["fields"][1:3] and shown(ours) == shown(twin)
    since, more = (ours.frontier(), twin.frontier()), [("a", None, []), ("b", [(D("2.00"), None, [7])], [D("3.00")])]
    for table in (ours, twin):
        table.upsert(*more, delete=[rows[3]])
    assert shown(ours) == shown(twin) and change(ours, since[0]) == change(twin, since[1])
    for table in (ours, twin):
        written_here(
            table, [("a", _items([(D("-1.00"), moment, None)]), [None]), ("e", [None], None)], [("c", None, None)]
        )
    assert shown(ours) == shown(twin) and change(ours, since[0]) == change(twin, since[1])


def _items(value: object) -> object:
    """The structs of an array as Arrow takes them."""
    names = ("c", "at", "more")
    return value and [item and dict(zip(names, item, strict=True)) for item in value]  # type: ignore[attr-defined]


@pytest.mark.release
def test_arrays_that_spark_built_are_followed_without_it(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    table = lake.source("t", "id int, n tinyint, d decimal(10,2), s string, tags array<string>")
    table.upsert((1, 2, D("1.50"), "a,b", ["x", None]), (2, None, None, None, None), (4, 1, None, "", []))
    lake.model(
        "m", "select id, array(id, 1) as a, split(s, ',') as parts, array(struct(d, n)) as st, tags,"
        " transform(tags, t -> concat(t, '!')) as loud from @t",
    )  # fmt: skip
    lake.model("g", "select size(a) as n, collect_list(id) as ids, sort_array(collect_set(parts[0])) as firsts,"
               " max_by(st, id) as last from {{ ref('m') }} group by size(a)")  # fmt: skip
    lake.model("e", "select id, pos, tag from {{ ref('m') }} lateral view outer posexplode(tags) l as pos, tag")
    assert set(lake.run_well().values()) == {"full_refresh"}
    lake.assert_maintained()
    table.upsert((1, 3, None, "c", []), (3, 1, D("2.00"), "d,", [None, "y"]), delete=[(2, None, None, None, None)])
    assert lake.run_well() == {"m": "row_based", "g": "group_recompute", "e": "row_based"}
    lake.assert_maintained()


def test_a_table_made_without_spark_is_one_that_hudi_goes_on_with(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path)
    ours, twin = (lake.source(name, "_sml_key string, n decimal(12,2), ym string", ("_sml_key",), "ym", 2)
                  for name in ("ours", "twin"))  # fmt: skip
    rows = [("a", D("1.50"), "m1"), ("b", None, "m1"), ("é", D("-9.99"), "m2")]
    twin.write(*rows, operation="bulk_insert")
    columns = (Column("_sml_key", "string"), Column("n", "decimal(12,2)"), Column("ym", "string"))
    made = NewTable(ours.uri, ours.layout.name, columns, "ym", 2)
    keys, amounts, months = zip(*rows, strict=True)
    made.write(
        pa.table({"n": pa.array(amounts, pa.decimal128(12, 2)), "ym": list(months), "_sml_key": list(keys)}),
        {"by": "us"},
    )
    written = {name: (value, twin.timeline.properties.get(name)) for name, value in ours.timeline.properties.items()}
    own = ("hoodie.table.name", "hoodie.table.checksum")
    assert {name: pair for name, pair in written.items() if pair[0] != pair[1] and name not in own} == {}
    assert ours.timeline.properties.keys() == twin.timeline.properties.keys()
    for table in (ours, twin):
        table.upsert(("a", D("2.00"), "m1"), ("c", D("0.00"), "m3"), delete=[("b", None, "m1")])
    assert shown(ours) == shown(twin)
    assert sum(shown(ours).values()) == 3
    again = [("a", D("2.00"), "m1"), ("d", D("7.00"), "m4")]
    since, groups = (ours.frontier(), twin.frontier()), set(ours.timeline.slices(ours.frontier()))
    twin.write(*again, operation="insert_overwrite_table")
    keys, amounts, months = zip(*again, strict=True)
    rows_again = pa.table({"n": pa.array(amounts, pa.decimal128(12, 2)), "ym": list(months), "_sml_key": list(keys)})
    made.overwrite(settled_timeline(ours.uri), ours.frontier(), rows_again, {"by": "us"})
    newest = [table.timeline.commits[-1] for table in (ours, twin)]
    assert (newest[0].operation, newest[0].instant.action) == (newest[1].operation, newest[1].instant.action)
    assert newest[0].replaced_groups == groups
    assert shown(ours) == shown(twin) and change(ours, since[0]) == change(twin, since[1])
    for table in (ours, twin):
        table.upsert(("d", D("8.00"), "m4"), delete=[("a", None, "m1")])
    assert shown(ours) == shown(twin)
    clean_history(spark, ours.uri, 1)
    assert not groups & {(write.rpartition("/")[0], write.split("/")[-1].split("_")[0]) for write in files(ours)}
    assert shown(ours) == shown(twin)


def files(table: Table) -> list[str]:
    return sorted(table.timeline.data_files)


LAYOUTS = [("ym", 1, ()), (None, 1, ()), (None, 5, ("_sml_position",))]


@parametrize(
    ("partition", "buckets", "ordering"), suite=[("ym", 3, ("_sml_order_0", "_sml_position"))], release=LAYOUTS
)
def test_commits_of_both_writers_in_turn_leave_what_hudis_alone_leave(
    spark: SparkSession, tmp_path: Path, partition: str | None, buckets: int, ordering: tuple[str, ...]
) -> None:
    dice, lake = random.Random(repr((partition, buckets, ordering))), Lake(spark, tmp_path)
    key = ("_sml_key",)
    ours, twin = (lake.source(name, COLUMNS, key, partition, buckets, ordering) for name in ("ours", "twin"))
    first = [row(dice, id, 5, id % 3 + 1) for id in range(20)]
    for table in (ours, twin):
        table.write(*first, operation="bulk_insert")
    logged = 0
    for number in range(5):
        ids = dice.sample(range(28), 9)
        versions = [dice.randrange(3, 9) for _ in ids]
        batch = [
            row(dice, id, version, id % 3 + 1 + (id + number) % 2) for id, version in zip(ids, versions, strict=True)
        ]
        upserts, deletes = batch[:6], batch[6:]
        since = ours.frontier(), twin.frontier()
        twin.upsert(*upserts, delete=deletes)
        if number == 3:  # Hudi's writer goes on from what ours left
            ours.upsert(*upserts, delete=deletes)
        else:
            before = places(ours)
            result = written_here(ours, upserts, deletes)
            assert result.frontier == ours.frontier()
            after = places(ours)
            written = {place for place, instant in after.items() if result.frontier.startswith(instant)}
            expected = len(written - before.keys()), len(written & before.keys()), len(before.keys() - after.keys())
            assert (result.inserts, result.updates, result.deletes) == expected == counts(ours)
            logs = logs_between(ours.timeline, since[0], ours.frontier())
            assert all(logged_columns(ours.timeline, log) for log in logs)
            logged += len(logs)
        assert shown(ours) == shown(twin), number
        assert change(ours, since[0]) == change(twin, since[1]), number
    assert logged == 4
    assert unfinished(ours) == []
    newest = max(ours.timeline.slices(ours.frontier()).values(), key=lambda each: each.instant)
    keys = {"hoodie_min_record_key", "hoodie_max_record_key", "parquet.avro.schema"}
    assert keys <= ours.timeline.footer(newest.path).keys()
    files = len(ours.timeline.data_files)
    clean_history(spark, ours.uri, 2)
    assert len(ours.timeline.data_files) < files
    assert shown(ours) == shown(twin)


def unfinished(table: Table) -> list[str]:
    """What is left of commits in flight."""
    places = (Path(table.uri) / ".hoodie" / name for name in (".temp", ".sml_writer"))
    return sorted(str(path) for place in places for path in place.glob("*"))


def test_buckets_are_those_of_hudi(spark: SparkSession) -> None:
    identifier = spark._jvm.org.apache.hudi.index.bucket.BucketIdentifier  # type: ignore[union-attr]
    for key in ("1", "customer-01", "ü", "😀", "a" * 100, "", "00000", "12/4:text".replace(":", "%3A")):
        for buckets in (2, 3, 31, 256):
            assert bucket_of(key, buckets) == identifier.getBucketId(key, "_sml_key", buckets), (key, buckets)


def test_partitions_have_the_names_that_spark_gives_them(spark: SparkSession) -> None:
    dice = random.Random(1)
    columns = "t string, n bigint, d date, at timestamp, b boolean"
    texts = ("", "a", "a b", "-1", "ü", "1.5", ".", "a\n", "x" * 300, "😀", None, "_null", "%", "A-b.c")
    days = (dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None)
    moments = (
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_000),
        dt.datetime(2024, 1, 2),
        dt.datetime(10, 1, 1, 0, 0, 0, 1),
        None,
    )
    whether, numbers = (None, True, False), (None, 0, -7, 2**62)
    rows = [
        (text, dice.choice(numbers), dice.choice(days), dice.choice(moments), dice.choice(whether))
        for text in texts * 4
    ]  # fmt: skip
    frame = spark.createDataFrame(rows, columns)
    names = frame.columns
    for chosen in (names, *([name] for name in names)):
        expected = [r[0] for r in frame.select(partition_path(chosen)).collect()]
        table = pa.table({name: pa.array([r[names.index(name)] for r in rows]) for name in chosen})
        assert partition_names(table, chosen).to_pylist() == expected, chosen


def small(lake: Lake) -> tuple[Table, random.Random]:
    dice = random.Random(1)
    table = lake.source("t", COLUMNS, ("_sml_key",), "ym")
    table.write(*[row(dice, id, 1, 1) for id in range(3)], operation="bulk_insert")
    return table, dice


def leave_file(table: Table, commit: OpenCommit) -> Path:
    """Half of a data file, with its marker, of a writer that died while it wrote it."""
    name = f"ym=202201/00000000-0000-0000-0000-000000000000-0_9-0-0_{commit.instant}.parquet"
    commit.mark(name, is_new=True)
    (Path(table.uri) / name).write_bytes(b"half")
    return Path(table.uri) / name


@pytest.mark.parametrize("action", ["commit", "replacecommit"])
def test_hudi_removes_what_a_writer_that_died_left(lake: Lake, action: Action) -> None:
    table, dice = small(lake)
    before = shown(table)
    commit = open_commit(Path(table.uri), table.frontier(), action)
    left = leave_file(table, commit)
    assert shown(table) == before and table.timeline.pending == (commit.instant,)
    table.upsert(row(dice, 9, 1, 1))
    assert sum(shown(table).values()) == 4 and table.timeline.pending == ()
    assert not left.exists()


def test_this_writer_removes_what_it_left_when_it_died(lake: Lake) -> None:
    table, dice = small(lake)
    commit = open_commit(Path(table.uri), table.frontier())
    left = leave_file(table, commit)
    (Path(table.uri) / ".hoodie" / "timeline" / f"{commit.instant}.inflight").unlink()
    assert written_here(table, [row(dice, 9, 1, 1)], []).inserts == 1
    assert sum(shown(table).values()) == 4 and table.timeline.pending == () and unfinished(table) == []
    assert not left.exists()


def test_a_failing_write_leaves_the_table_as_it_was(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, dice = small(lake)
    before, files = shown(table), sorted(Path(table.uri).rglob("*"))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_writer, "_log", fail)
    with pytest.raises(OSError, match="No space left"):
        written_here(table, [row(dice, 9, 1, 1), row(dice, 1, 1, 5)], [])
    assert shown(table) == before and table.timeline.pending == ()
    new = set(Path(table.uri).rglob("*")) - set(files)
    assert {path.name for path in new} <= {"ym=202205", ".hoodie_partition_metadata", ".temp", ".sml_writer"}


def test_rows_of_many_bytes_are_left_to_hudi(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table, dice = small(lake)
    frame = lake.spark.createDataFrame([(*row(dice, 9, 1, 1), False)], f"{COLUMNS}, {IS_DELETED} boolean")
    before = table.frontier()
    with monkeypatch.context() as patch:
        patch.setattr(local_commit, "MOST_BYTES", 100)
        assert not local_commit.commit_locally(frame, table.layout, {}, 1)
    assert table.frontier() == before
    assert local_commit.commit_locally(frame, table.layout, {}, 1) and table.frontier() != before
    assert sum(shown(table).values()) == 4


def test_a_few_rows_in_memory_are_fetched_without_files_and_are_the_same(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, dice = small(lake)
    avro = table.timeline.schema_json(table.frontier())
    assert avro is not None
    fields = [field for field in file_schema(avro) if field.name not in HUDI_COLUMNS]
    values = [(*row(dice, id, id, id % 3 + 1), id % 2 == 0) for id in range(30)]
    kept = cached(lake.spark.createDataFrame(values, f"{COLUMNS}, {IS_DELETED} boolean"))
    assert kept.frame.count() == 30  # from here on Spark knows their size
    staged = local_commit._fetch_through_files(kept.frame, 30)
    monkeypatch.setattr(local_commit, "_fetch_through_files", lambda *_: None)
    collected = local_commit._fetch_rows(kept.frame, 30)
    assert staged is not None and collected is not None
    names = [field.name for field in fields]
    assert staged.column_names == collected.column_names == names
    one, other = (rows.cast(pa.schema(fields)).sort_by("_sml_key").to_pylist() for rows in (staged, collected))
    assert repr(one) == repr(other)  # as texts, because of NaN
    assert local_commit._fetch_rows(kept.frame.where("false"), 0) is None  # without rows: through files
    monkeypatch.setattr(local_commit, "_MOST_COLLECTED_BYTES", 0)
    assert local_commit._fetch_rows(kept.frame, 30) is None
    kept.release()


def test_another_writer_in_between_is_seen(lake: Lake) -> None:
    table, dice = small(lake)
    stale = table.frontier()
    timeline = table.timeline
    table.upsert(row(dice, 9, 1, 1))
    rows = pa.table({})
    with pytest.raises((RetryableError, UnsupportedRowsError)):
        upsert(Upsert(timeline, stale, rows, 1, {}, "ym"))
    with pytest.raises(RetryableError, match="another writer"):
        open_commit(Path(table.uri), stale)
    commit = open_commit(Path(table.uri), table.frontier())
    table.upsert(row(dice, 10, 1, 1))  # Hudi takes the commit that is under way for one that died
    with pytest.raises(RetryableError, match="another writer"):
        commit.complete(local_writer.CommitContent("UPSERT", (), {}))


def test_a_clock_that_was_set_back_does_not_put_a_commit_before_the_last(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, dice = small(lake)

    class Past(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return dt.datetime(2001, 1, 1, tzinfo=tz)

    monkeypatch.setattr("sqlmesh_like.hudi.writer.instant.datetime", Past)
    before = table.frontier()
    result = written_here(table, [row(dice, 9, 1, 1)], [])
    assert result.frontier > before and table.frontier() == result.frontier
    assert sum(shown(table).values()) == 4
