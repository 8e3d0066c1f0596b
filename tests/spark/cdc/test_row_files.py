"""The same Parquet and CSV files by Spark, without it, and by both in turn: the same rows with all that is hidden."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tests.spark.ingest_lake as ingest_lake
from sqlmesh_like.hudi.timeline import Timeline
from sqlmesh_like.project.nodes import CsvFormat, PartitionBy, SourceTable
from tests.spark.cdc.test_small_batches import ENGINES, LETTERS, _recorded, _stored
from tests.spark.ingest_lake import Lake, table

UTC = datetime.UTC
NOON = datetime.datetime(2024, 1, 31, 12, 30, 15, 123456, UTC)
Batch = Sequence[tuple[str, Any]]
"""Files, each the name of its table and its rows."""

TYPES: dict[str, pa.DataType] = {
    "Op": pa.string(), "id": pa.int32(), "name": pa.string(), "price": pa.decimal128(14, 4), "number": pa.string(),
    "wide": pa.decimal128(38, 10), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"), "day": pa.date32(),
    "yes": pa.bool_(), "raw": pa.binary(), "small": pa.int16(), "tiny": pa.int8(), "big": pa.int64(),
    "count": pa.uint32(), "hash": pa.uint64(), "single": pa.float32(), "double": pa.float64(), "rate": pa.float64(),
    "cents": pa.string(), "word": pa.dictionary(pa.int32(), pa.string()), "ms": pa.timestamp("ms", "Europe/Berlin"),
}  # fmt: skip
DECLARED = {"id": "bigint", "price": "decimal(10,2)", "number": "int", "cents": "decimal(6,2)", "single": "string",
            "rate": "decimal(10,3)"}  # fmt: skip


def row(id: int | None, op: str | None = None, **values: Any) -> dict[str, Any]:
    plain = {
        "Op": op, "id": id, "name": f"n{id}", "price": Decimal("12.3400"), "number": "12", "cents": "1.5",
        "wide": Decimal("1234567890123456789012345678.0123456789"), "at": NOON, "local": NOON.replace(tzinfo=None),
        "day": NOON.date(), "yes": True, "raw": b"\x00\xff", "small": 7, "tiny": -128, "big": 2**62, "count": 2**32 - 1,
        "hash": 2**64 - 1, "single": 0.1, "double": 7.0, "rate": (id or 4) / 8, "word": "w",
        "ms": NOON.replace(microsecond=123000),
    }  # fmt: skip
    return {**plain, **values}


NOTHING = dict.fromkeys(name for name in TYPES if name not in ("Op", "id", "at"))


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    names = list(dict.fromkeys(name for each in rows for name in each))
    kinds = {**TYPES, "more": pa.string(), "id": pa.int64() if "more" in names else pa.int32()}
    arrays = {name: pa.array([each.get(name) for each in rows], pa.string() if name == "word" else kinds[name])
              for name in names}  # fmt: skip
    if "word" in arrays:
        arrays["word"] = arrays["word"].dictionary_encode()
    pq.write_table(pa.table(arrays), path, row_group_size=3)


def without(name: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key != name} for each in rows]


LATER = NOON + datetime.timedelta(days=40)
PARQUET: Sequence[Batch] = [
    [
        ("t", without("Op", [row(id) for id in range(9)])),
        ("u", [row(1), row(2, "I"), row(3, "U", **NOTHING), row(7, cents="1,234.5"), row(28, number="2147483648"),
               row(None), row(11, "X"), row(12, "insert"), row(13, "load"), row(18, number=" 5 "), row(24, "D"),
               row(26, "I", name="a"), row(26, "U", name="b"), row(27, "I"), row(27, "D"), row(20, name="")]),
        ("s", [row(id, "I") for id in range(6)]),
        ("other", [row(1)]),
    ],
    [
        ("t", [row(1, "U", name="ü|:,%"), row(2, "D"), row(20, "I", day=datetime.date(1, 1, 1)), row(None, "D")]),
        ("t", [{**row(30, "I"), "more": "m"}, {**row(1, "U", double=-0.0, single=0.1), "more": None}]),
        ("u", without("small", [row(1, "U", at=LATER), row(2, "D", at=LATER), row(3, "U", at=NOON.replace(year=2020)),
                                row(26, "U", at=NOON, number="x")])),
        ("s", [row(1, "D"), row(2, "U", at=LATER), row(9, "I", double=1e300, at=None)]),
    ],
    [
        ("t", [row(2, "I"), row(1, "D")]),
        ("u", [row(2, "U", at=NOON), row(3, "D", at=LATER), row(26, "U", at=LATER), row(40, "I")]),
        ("s", [row(1, "I", name="back"), row(9, "D"), row(9, "D")]),
    ],
]  # fmt: skip
BY_MONTH = PartitionBy("at", "yyyyMM", "month")
CSV_TYPES = {"id": "bigint", "name": "string", "price": "decimal(10,2)", "at": "timestamp"}
CSV: Sequence[Batch] = [
    [
        ("t", '1,"a ""b"",\nc",1.50,2024-05-01 10:00:00.000000\n2,NULL,NULL,NULL\n3,,7,NULL\n"4","","7",NULL\n'),
        ("t", " 5 , x ,1.5,2024-05-01\n6,張三 \\n\\,2,NULL\n7,a\tb,100,NULL\n8,\ufffd,NULL,\n9,,,"),
        ("u", "1,a,1,2024-05-01 00:00:00\n2,b,1,2024-06-01 00:00:00\n"),
        ("other", "1,2\n"),
    ],
    [
        ("t", "U,1,張三,2,2024-05-02 10:00:00\nD,2,NULL,NULL,NULL\nI,5,e,0.5,NULL\nX,6,e,0.5,NULL\n"),
        ("u", "U,1,c,1,2024-07-01 00:00:00\nD,2,b,1,2024-05-01 00:00:00\nU,2,late,1,2024-04-01 00:00:00\n"),
    ],
    [("t", "I,2,again,NULL,NULL\nU,5,,3.25,2024-05-02 10:00:00\n"), ("u", "D,1,c,1,2024-08-01 00:00:00\n")],
]


def tables(columns: Mapping[str, str]) -> tuple[SourceTable, ...]:
    return (
        table("t", columns=columns),
        table("u", columns=columns, order_by=("at",), partition_by=BY_MONTH),
        table("s", columns=columns, deletes="soft", origin="came_from"),
    )


def land(lake: Lake, batch: Batch, ending: str, write: Callable[[Path, Any], object]) -> None:
    for name, content in batch:
        folder = lake.landing / "db" / name
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{lake.landed:04d}.{ending}"
        write(path, content)
        os.utime(path, (1_700_000_000 + lake.landed, 1_700_000_000 + lake.landed))
        lake.landed += 1


def assert_engines_agree(
    spark: SparkSession,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    batches: Sequence[Batch],
    settings: Mapping[str, Any],
    declared: tuple[SourceTable, ...],
) -> None:
    """All engines take all batches, none leaves one to another, and tables, letters and records are the same."""
    ending = str(settings["files"]).rpartition(".")[2]
    write: Callable[[Path, Any], object] = Path.write_text if ending == "csv" else write_parquet
    results: dict[str, Any] = {}
    for name, engines in ENGINES.items():
        lake = Lake(spark, root / name.replace(" ", "_") / "shop", declared, {"format": "dms", **settings})
        lake.root.mkdir(parents=True)
        reports = []
        for engine, batch in zip(engines, batches, strict=True):
            monkeypatch.setattr(ingest_lake, "SMALL_BATCHES", engine == "h")
            land(lake, batch, ending, write)
            report = lake.run()
            assert not report.failed and not lake.reasons, (name, report, lake.reasons)
            reports.append((report.dead_letters, report.first_dead_letter, report.skipped))
        made = [each.name for each in declared if Timeline(lake.uri(each.name)).exists]
        results[name] = {
            "rows": _stored(spark, lake, [*made, LETTERS]),
            "types": {each: spark.read.format("hudi").load(lake.uri(each)).dtypes for each in [*made, LETTERS]},
            "records": {each: _recorded(lake, each) for each in made},
            "reports": reports,
        }
    for name, result in results.items():
        for table_name, rows in results["spark"]["rows"].items():
            for own, theirs in zip(result["rows"][table_name], rows, strict=True):
                assert own == theirs, (name, table_name)
        assert result == results["spark"], name


def test_parquet_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"files": "landing/*/*/*.parquet"}
    assert_engines_agree(spark, tmp_path, monkeypatch, PARQUET, settings, tables(DECLARED))


@pytest.mark.release
def test_csv_files(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"files": "landing/*/*/*.csv"}
    assert_engines_agree(spark, tmp_path, monkeypatch, CSV, settings, tables(CSV_TYPES)[:2])


def _text(rng: random.Random) -> str:
    return "".join(rng.choice('ab ",\n\\|;\t%é€') for _ in range(rng.randrange(5)))


def _value(rng: random.Random) -> str:
    text = _text(rng)
    is_quoted = bool(set(text) & set('",\n')) or rng.random() < 0.3
    return '"' + text.replace('"', '""') + '"' if is_quoted else text


@pytest.mark.release
@pytest.mark.parametrize("null", ["", "NULL"])
def test_csv_files_of_random_texts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, null: str
) -> None:
    """Whose header names the columns; nothing is left to Spark that is written as RFC 4180 says."""
    rng = random.Random(f"rows {null}")
    batches = []
    for number in range(3):
        texts = [(_value(rng), _value(rng), rng.choice(("NULL", "", "x"))) for _ in range(60)]
        lines = [",".join((str(100 * number + each), *values)) for each, values in enumerate(texts)]
        batches.append([("t", "\n".join(["id,a b,line,file", *lines, ""]))])
    settings = {"format": "rows", "files": "landing/*/*/*.csv", "csv": CsvFormat(True, null)}
    monkeypatch.setattr("tests.spark.cdc.test_row_files.LETTERS", "t")
    assert_engines_agree(spark, tmp_path, monkeypatch, batches, settings, (table("t", columns={"id": "int"}),))
