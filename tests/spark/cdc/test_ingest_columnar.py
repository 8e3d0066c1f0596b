"""Parquet rows keep their types on the way into a table: what they come to is what their texts would."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from sqlmesh_like.cdc.formats import columnar
from sqlmesh_like.cdc.sources.batch_marker import BatchMarker
from sqlmesh_like.cdc.sources.event_log import LINE_COLUMNS
from sqlmesh_like.cdc.sources.offset_range import files_of
from sqlmesh_like.cdc.sources.parquet_log import ParquetLog
from sqlmesh_like.cdc.sources.row_files import RowFiles
from sqlmesh_like.cdc.sources.source_paths import SourcePaths
from sqlmesh_like.cdc.stream.batch import BatchReport, ingest_batch
from sqlmesh_like.cdc.stream.ingest_context import IngestContext
from sqlmesh_like.errors import IngestError
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import PartitionBy
from tests.spark.ingest_lake import Lake, table

UTC = datetime.UTC
NOON = datetime.datetime(2024, 1, 31, 12, 30, 15, 123456, UTC)
LATER = datetime.datetime(2024, 2, 1, tzinfo=UTC)
FAR = 253402300800000000  # 10000-01-01, as microseconds: no text spells it


class Both:
    """The same files ingested as typed rows into one warehouse, and as texts into another."""

    def __init__(self, spark: SparkSession, root: Path, **ingest: Any) -> None:
        settings = {"format": "dms", "files": "landing/*/*/*.parquet"}
        columns = ingest.pop("columns", None)
        self.spark, self.root, self.number = spark, root, 0
        self.lakes = [
            Lake(spark, root / name, (table(columns=columns, **ingest),), settings) for name in ("typed", "text")
        ]

    def land(self, columns: Mapping[str, list[Any]], types: Mapping[str, pa.DataType]) -> tuple[int, str]:
        self.number += 1
        folder = self.root / "landing" / "db" / "t"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.number:04d}.parquet"
        schema = pa.schema(list(types.items()))
        arrays = {name: pa.array(columns[name], kind) for name, kind in types.items()}
        pq.write_table(pa.table(arrays, schema=schema), path)
        os.utime(path, (1_700_000_000 + self.number, 1_700_000_000 + self.number))
        return (1_700_000_000_000 + self.number * 1000, f"file:{path}")

    def take(self, *files: tuple[int, str]) -> tuple[BatchReport, BatchReport]:
        """One batch of files, both ways."""
        reports = []
        for lake, as_text in zip(self.lakes, (False, True), strict=True):
            _, target, source = lake.declared()
            log = ParquetLog(f"{self.root}/landing/*/*/*.parquet")
            extent = files_of(list(files))
            with log.lines(log.read(self.spark, extent)) as (rows, _):
                assert isinstance(rows, list)
                lines = as_lines(rows) if as_text else rows
                mark = BatchMarker("q", self.number, extent)
                context = IngestContext(lambda: self.spark, SourcePaths(target, source), lake.root, log)
                reports.append(ingest_batch(context, lines, lambda _, mark=mark: mark))
        return reports[0], reports[1]

    def assert_equal(self, *, with_positions: bool = True) -> list[tuple[Any, ...]]:
        """Both tables and their dead letters are the same, row for row; the rows of the typed one."""
        typed, text = ([*map(str, _hudi(lake, "t", with_positions).collect())] for lake in self.lakes)
        assert sorted(typed) == sorted(text)
        assert self.lakes[0].types() == self.lakes[1].types()
        letter_rows = [_letters(lake) for lake in self.lakes]
        assert letter_rows[0] == letter_rows[1]
        return self.lakes[0].rows()


def as_lines(rows: list[RowFiles]) -> DataFrame:
    """The rows as the lines of a log: each a JSON text of texts, with the columns that the file states."""
    frames = []
    for files in rows:
        named = {"value": columnar.line(files.schema, "raw."), "logged_at": "modified"}
        frames.append(files.frame.selectExpr(*(f"{named.get(name, name)} as {name}" for name in LINE_COLUMNS)))
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionByName(frame)
    return union


def _hudi(lake: Lake, name: str, with_positions: bool) -> DataFrame:
    frame = lake.spark.read.format("hudi").load(lake.uri(name))
    left_out = () if with_positions else ("_sml_position",)
    return frame.select(*(c for c in sorted(frame.columns) if not c.startswith("_hoodie") and c not in left_out))


def _letters(lake: Lake) -> list[tuple[Any, ...]]:
    if not Timeline(lake.uri("shop__dead_letters")).frontier:
        return []
    rows = lake.rows("shop__dead_letters", "position", "reason", "text", "place", "log_schema", "row_key")
    # Whose a row of an unknown operation is, its columns say; a text is not looked into.
    return [(*letter, None if str(letter[1]).startswith("unknown") else key) for *letter, key in rows]


TYPES: dict[str, pa.DataType] = {
    "Op": pa.string(), "id": pa.int32(), "name": pa.string(), "price": pa.decimal128(14, 4), "number": pa.string(),
    "wide": pa.decimal128(38, 10), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": pa.date32(),
    "yes": pa.bool_(), "raw": pa.binary(), "small": pa.int16(), "big": pa.int64(), "single": pa.float32(),
    "double": pa.float64(), "list": pa.list_(pa.int32()), "cents": pa.string(),
    "born": pa.timestamp("us", "UTC"),
}  # fmt: skip
DECLARED = {"id": "bigint", "price": "decimal(10,2)", "number": "int", "cents": "decimal(6,2)", "single": "double"}
DECLARED |= {"born": "date"}


def row(id: int | None, op: str | None = None, **values: Any) -> dict[str, Any]:
    plain = {
        "Op": op, "id": id, "name": f"n{id}", "price": Decimal("12.3400"), "number": "12", "cents": "1.5",
        "wide": Decimal("1234567890123456789012345678.0123456789"), "at": NOON, "local": NOON.replace(tzinfo=None),
        "day": NOON.date(), "yes": True, "raw": b"\x00\xff", "small": 7, "big": 2**62, "single": 0.1, "double": 1e300,
        "list": [1, None], "born": LATER,
    }  # fmt: skip
    return {**plain, **values}


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [each[name] for each in rows] for name in TYPES}


NOTHING = dict.fromkeys(("yes", "raw", "list", "at", "day", "local", "double", "wide", "name", "small"))
ODD = [
    row(1), row(2, "I"), row(3, "U", **NOTHING), row(None), row(4, price=Decimal("1.2345")), row(6, number="x"),
    row(5, price=Decimal("9999999999.0000")), row(7, cents="1,234.5"), row(8, cents="1.234"), row(9, cents=" 1.5"),
    row(10, cents="1e2"), row(11, "X"), row(12, "insert"), row(13, "load"), row(14, at=FAR), row(15, local=FAR),
    row(16, double=float("nan"), single=float("inf")), row(17, double=-0.0, single=1e-40), row(18, number=" 5 "),
    row(19, number="5.0"), row(20, name=""), row(21, name="ü|:,%"), row(22, day=datetime.date(1, 1, 1)),
    row(23, wide=Decimal("0E-10")), row(24, "D"), row(25, big=None, number=None), row(26, "I", name="a"),
    row(26, "U", name="b"), row(26, "U", name="c", at=LATER), row(27, "I"), row(27, "D"),
    row(28, number="2147483648"), row(29, cents=""), row(30, cents="NaN"), row(31, born=NOON),
]  # fmt: skip


@pytest.mark.release
@pytest.mark.parametrize("partition_by", [PartitionBy("at", "yyyyMM", "month"), None])
def test_a_first_load_of_odd_rows_is_what_their_texts_come_to(
    spark: SparkSession, tmp_path: Path, partition_by: PartitionBy | None
) -> None:
    both = Both(spark, tmp_path, columns=DECLARED, partition_by=partition_by)
    typed, text = both.take(both.land(columns_of(ODD), TYPES))
    assert [each.error for each in (*typed.tables, *text.tables)] == [None, None]
    assert (typed.events, typed.dead_letters) == (text.events, text.dead_letters) and typed.dead_letters > 8
    loaded = both.assert_equal()
    assert len(loaded) == 14
    # A batch of changes upon it, with a column more, one less and another type.
    types = {**{name: kind for name, kind in TYPES.items() if name != "small"}, "id": pa.int64(), "more": pa.string()}
    changes = [row(1, "D"), row(2, "U", at=LATER), row(16, "U", price=Decimal("7.0000")), row(40, "I"), row(41, "?"),
               row(None, "D"), row(42, "I", number="y"), row(42, "U")]  # fmt: skip
    more = {**columns_of(changes), "more": [f"m{index}" for index, _ in enumerate(changes)]}
    typed, text = both.take(both.land(more, types))
    assert [each.error for each in (*typed.tables, *text.tables)] == [None, None]
    assert typed.dead_letters == text.dead_letters == 3
    assert [(t.upserts, t.deletes, t.late) for t in typed.tables] == [
        (t.upserts, t.deletes, t.late) for t in text.tables
    ]
    both.assert_equal()


@pytest.mark.release
@pytest.mark.parametrize(
    "settings",
    [
        {"deletes": "soft", "partition_by": PartitionBy("day", "yyyy", "year")},
        {},
        {"order_by": ("at",)},
        {"primary_key": ("name", "id")},
        {"primary_key": ()},
        {"updates": "partial"},
        {"origin": "came_from"},
    ],
)
def test_loads_and_batches_of_every_kind_of_table_are_alike(
    spark: SparkSession, tmp_path: Path, settings: dict[str, Any]
) -> None:
    both = Both(spark, tmp_path, **settings)
    rows = [row(id) for id in range(8)]
    load = {name: kind for name, kind in TYPES.items() if name != "Op"}
    first = both.land(columns_of(rows), load)
    # Another schema of the same table in the same batch.
    fewer = {name: kind for name, kind in load.items() if name != "list"}
    second = both.land(columns_of([row(id) for id in range(8, 12)]), fewer)
    both.take(first, second)
    assert len(both.assert_equal(with_positions=False)) == 12
    if settings.get("primary_key", ("id",)):
        changes = [row(1, "U", at=LATER), row(2, "D", at=LATER), row(20, "I"), row(3, "U", at=NOON.replace(year=2020)),
                   row(20, "U", name="n20", big=5, at=LATER)]  # fmt: skip
        both.take(both.land(columns_of(changes), TYPES))
        assert len(both.assert_equal(with_positions=False)) >= 12


def test_a_clean_load_remembers_files_not_rows(spark: SparkSession, tmp_path: Path) -> None:
    both = Both(spark, tmp_path)
    both.take(both.land(columns_of([row(id) for id in range(5)]), TYPES))
    positions = {place for (place,) in both.lakes[0].rows("t", "_sml_position")}
    assert len(positions) == 1 and positions.pop().endswith("/0001.parquet|")


def test_a_file_that_spark_cannot_read_is_named_and_nothing_is_ingested(spark: SparkSession, tmp_path: Path) -> None:
    both = Both(spark, tmp_path)
    good = both.land({"id": [1]}, {"id": pa.int32()})
    timed = both.land({"id": [2], "at": [datetime.time(12)]}, {"id": pa.int32(), "at": pa.time64("us")})
    half = both.land({"id": [3]}, {"id": pa.int32()})
    path = Path(half[1].removeprefix("file:"))
    path.write_bytes(path.read_bytes()[:-7])
    for bad, why in ((timed, "TIME"), (half, "is not a Parquet file")):
        with pytest.raises(IngestError, match=f"{Path(bad[1]).name} is not read by Spark: .*{why}"):
            both.take(good, bad)
    assert not Timeline(both.lakes[0].uri()).exists
    assert both.take(good)[0].events == 1


def test_rows_of_tables_that_nobody_declared_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    both = Both(spark, tmp_path)
    folder = tmp_path / "landing" / "db" / "other"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3])}), folder / "a.parquet")
    file = both.land(columns_of([row(1)]), TYPES)
    typed, text = both.take(file, (1, f"file:{folder / 'a.parquet'}"))
    assert typed.skipped == text.skipped == {"undeclared db.other": 3}
    assert typed.events == text.events == 4


@pytest.mark.release
def test_local_times_of_files_are_those_of_their_texts(spark: SparkSession, tmp_path: Path) -> None:
    both = Both(spark, tmp_path, time_zone="Europe/Berlin", primary_key=("id", "key"), partition_by=None)
    moments = [datetime.datetime.fromisoformat(each) for each in ("2024-07-01 12:00", "2024-03-31 02:30", "9999-12-31")]
    rows = {"id": [1, 2, 3], "key": [moments[0], moments[1], None], "at": moments, "local": moments}
    rows["key"][2] = moments[0]
    types = {"id": pa.int32(), "key": pa.timestamp("us"), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us")}
    both.take(both.land(rows, types))
    ten, last = datetime.datetime(2024, 7, 1, 10), datetime.datetime(9999, 12, 30, 23)
    assert both.assert_equal() == [(1, ten, ten, ten), (3, ten, last, last)]  # a key that the clock skips is malformed
