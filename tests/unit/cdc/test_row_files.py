"""A few rows of Parquet and CSV files, ingested without Spark; files whose values only Spark knows are left to it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import IngestError
from sqlmesh_like.project.nodes import CsvFormat
from tests.unit.cdc.test_small_batches import Lake, SparkAskedError, declared

UTC = datetime.UTC
NOON = datetime.datetime(2024, 1, 31, 12, 30, 15, 123456, UTC)
CSV = {"id": "bigint", "name": "string", "price": "decimal(9,2)"}


def parquet_lake(root: Path, **ingest: Any) -> Lake:
    return Lake(root, (declared(**ingest),), "dms", {"files": "landing/*/*/*.parquet"})


def csv_lake(root: Path, csv: CsvFormat | None = None) -> Lake:
    settings = {"files": "landing/*/*/*.csv", "csv": csv or CsvFormat()}
    return Lake(root, (declared(types=CSV),), "dms", settings)


def landed(lake: Lake, ending: str) -> Path:
    path = lake.root / "landing" / "db" / "t" / f"{lake.files:04d}.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    lake.files += 1
    return path


def land_rows(lake: Lake, rows: pa.Table | dict[str, Any], **options: Any) -> Path:
    path = landed(lake, "parquet")
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(rows), path, **options)
    os.utime(path, (1_700_000_000 + lake.files, 1_700_000_000 + lake.files))
    return path


def land_text(lake: Lake, text: str | bytes) -> Path:
    path = landed(lake, "csv")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_700_000_000 + lake.files, 1_700_000_000 + lake.files))
    return path


def test_rows_of_parquet_files_keep_their_types(tmp_path: Path) -> None:
    lake = parquet_lake(tmp_path)
    land_rows(lake, {"id": pa.array([1, 2], pa.int32()), "price": [Decimal("1.50"), None], "at": [NOON, None],
                     "raw": [b"\x00", None], "count": pa.array([2**64 - 1, None], pa.uint64())})  # fmt: skip
    lake.ingest()
    land_rows(lake, {"Op": ["U", "D", "I"], "id": pa.array([1, 2, 3], pa.int64()), "note": ["a", "b", "c"]})
    report = lake.ingest()
    assert [(table.upserts, table.deletes) for table in report.tables] == [(2, 1)]
    nothing = dict.fromkeys(("price", "at", "raw", "count"))
    assert lake.rows() == [{"id": 1, "note": "a", **nothing}, {"id": 3, "note": "c", **nothing}]
    assert lake.reasons == [] and lake.commits() == 2


def test_numbers_with_a_fraction_become_the_decimals_and_texts_of_java(tmp_path: Path) -> None:
    types = {"id": "bigint", "half": "decimal(6,2)", "share": "decimal(20,18)", "single": "string", "double": "string"}
    lake = Lake(tmp_path, (declared(types=types),), "dms", {"files": "landing/*/*/*.parquet"})
    numbers = [0.1, -2.5, 1e-7, 16777216.0]
    floats, doubles = pa.array(numbers, pa.float32()), pa.array(numbers, pa.float64())
    land_rows(lake, {"id": [1, 2, 3, 4], "half": [0.01, 1.1, -0.0, 99.95], "share": pa.array([0.1] * 4, pa.float32()),
                     "single": floats, "double": doubles})  # fmt: skip
    lake.ingest()
    tenth = Decimal("0.100000000000000000")
    assert {row["id"]: tuple(row.values())[1:] for row in lake.rows()} == {
        1: (Decimal("0.01"), tenth, "0.1", "0.1"),
        2: (Decimal("1.10"), tenth, "-2.5", "-2.5"),
        3: (Decimal("0.00"), tenth, "1.0E-7", "1.0E-7"),
        4: (Decimal("99.95"), tenth, "1.6777216E7", "1.6777216E7"),
    }
    assert lake.reasons == []


def test_a_row_that_cannot_be_ingested_becomes_a_dead_letter_with_its_text(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (declared(types={"id": "int", "cents": "decimal(6,2)"}),), "dms")
    lake.settings = {"files": "landing/*/*/*.parquet"}
    land_rows(lake, {"Op": ["I", "X", None], "id": [1, 2, 3], "cents": ["1.5", "1", 'a "b"']})
    report = lake.ingest()
    assert report.dead_letters == 2 and [row["id"] for row in lake.rows()] == [1]
    letters = lake.rows("shop__dead_letters")
    assert sorted((letter["text"], letter["reason"].partition(":")[0]) for letter in letters) == [
        ('{"Op":"X","id":"2","cents":"1"}', "unknown operation `X`"),
        ('{"Op":null,"id":"3","cents":"a \\"b\\""}', "column `cents`"),
    ]


def test_records_of_csv_files_are_texts_of_their_columns(tmp_path: Path) -> None:
    lake = csv_lake(tmp_path)
    land_text(lake, '1,"a ""b"",\nc",1.50\n2,NULL,NULL\n3,,7\n"4","",NULL\n')
    lake.ingest()
    land_text(lake, "U,1, x ,2\nD,2,NULL,NULL\nI,5,\\n,0.5")
    lake.ingest()
    assert [tuple(row.values()) for row in lake.rows()] == [
        (1, " x ", Decimal("2.00")), (3, "", Decimal("7.00")), (4, "", None), (5, "\\n", Decimal("0.50")),
    ]  # fmt: skip
    assert lake.reasons == [] and lake.commits() == 2


def test_a_header_names_columns_also_those_of_the_reader(tmp_path: Path) -> None:
    lake = csv_lake(tmp_path, CsvFormat(header=True, null="", delimiter=";"))
    land_text(lake, 'line;id;Op;file;modified;name\n7;1;I;f;m;""\n8;2;;;;\n')
    lake.ingest()
    assert [(row["id"], row["line"], row["file"], row["modified"], row["name"]) for row in lake.rows()] == [
        (1, "7", "f", "m", ""),
        (2, "8", None, None, None),
    ]


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda lake: land_rows(lake, {"id": [1], "at": [datetime.time(12)]}), "column at, of INT64 as Time"),
        (lambda lake: land_rows(lake, {"id": [1], "list": [[1]]}), "column list.list.element"),
        (lambda lake: land_rows(lake, {"id": [1], "a.b": [1]}), "column a.b"),
        (lambda lake: land_rows(lake, {"id": [1], "x": [float("nan")]}), "NaN"),
        (
            lambda lake: land_rows(lake, {"id": [1], "at": [NOON]}, use_deprecated_int96_timestamps=True),
            "column at, of INT96",
        ),
        (
            lambda lake: land_rows(lake, pa.table({"id": [1], "at": pa.array([1], pa.timestamp("ns"))}), version="2.6"),
            "Timestamp in nanoseconds",
        ),
        (lambda lake: land_rows(lake, pa.table({"id": [1]}, metadata=_SPARKS)), "types of Spark's own"),
        (lambda lake: land_rows(lake, pa.table({"id": [1]}, metadata=_OLD)), "dates that an old Spark wrote"),
        (lambda lake: land_rows(lake, {"id": list(range(20_001))}), "more than 20,000 rows"),
        (lambda lake: landed(lake, "parquet").write_bytes(b"PAR1"), "0000.parquet"),
    ],
)  # fmt: skip
def test_parquet_files_that_are_not_certain_are_left_to_spark(
    tmp_path: Path, write: Callable[[Lake], object], why: str
) -> None:
    lake = parquet_lake(tmp_path)
    write(lake)
    with pytest.raises(SparkAskedError):
        lake.ingest()
    assert why in lake.reasons[0] and not (lake.warehouse / "ods").exists()


_FIELDS = '[{"name":"id","type":"varchar(9)"}]'
_SPARKS = {"org.apache.spark.sql.parquet.row.metadata": f'{{"type":"struct","fields":{_FIELDS}}}'}
_OLD = {"org.apache.spark.version": "3.1.1", "org.apache.spark.legacyDateTime": ""}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('1,a "b",1\n', "quotes in a value"),
        ('1, "b",1\n', "quotes in a value"),
        ('1,"b" ,1\n', "quotes in a value"),
        ("1,a,1\n\n2,b,1\n", "blank lines"),
        ("1,a,1\r\n", "carriage returns"),
        ("\ufeff1,a,1\n", "byte order mark"),
        ("1,a,1\n2,b\n", "more or fewer values"),
        (b"1,caf\xe9,1\n", "not utf-8"),
        ("", "files without records"),
    ],
)
def test_csv_files_that_are_not_certain_are_left_to_spark(tmp_path: Path, text: str | bytes, why: str) -> None:
    lake = csv_lake(tmp_path)
    land_text(lake, text)
    with pytest.raises(SparkAskedError):
        lake.ingest()
    assert why in lake.reasons[0] and not (lake.warehouse / "ods").exists()


def test_a_file_whose_columns_have_one_name_is_an_error_of_either_engine(tmp_path: Path) -> None:
    lake = parquet_lake(tmp_path)
    land_rows(lake, {"id": [1], "Id": [2]})
    with pytest.raises(IngestError, match=r"0000\.parquet has the column 'Id' twice"):
        lake.ingest()
    assert lake.reasons == []
