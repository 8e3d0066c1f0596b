"""Rows of a few keys, found in a table's files without Spark."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.hudi import key_lookup
from sqlmesh_like.hudi.key_lookup import KeyLookup, rows_by_key
from sqlmesh_like.hudi.writer.bucket_hash import buckets_of
from tests.written_table import WrittenTable

COLUMNS = {"p": "string", "id": "long", "v": "long"}


@pytest.fixture
def table(tmp_path: Path) -> WrittenTable:
    """Ten rows a partition, with the keys 0 to 29, and a value."""
    table = WrittenTable(tmp_path / "t", COLUMNS, "p").create()
    table.upsert([(str(number), f"p{number // 10}", number, number * 7) for number in range(30)])
    return table


def rows_of(table: WrittenTable, *keys: str, **lookup: object) -> list[tuple[object, ...]] | None:
    rows = rows_by_key(table.timeline, KeyLookup(keys, ("p", "v"), **lookup))  # type: ignore[arg-type]
    return None if rows is None else sorted(rows)


def break_files(table: WrittenTable, *partitions: str) -> None:
    """Make the files of these partitions unreadable, except their footers."""
    for partition in partitions:
        for path in (table.root / f"p={partition}").glob("*.parquet"):
            content = path.read_bytes()
            size = int.from_bytes(content[-8:-4], "little") + 8
            path.write_bytes(b"PAR1" + b"\xff" * (len(content) - size - 4) + content[-size:])


def test_the_newest_rows_of_the_keys_are_found_in_all_partitions(table: WrittenTable) -> None:
    table.upsert([("3", "p0", 3, -3), ("3", "p2", 3, -30), ("x", "p9", 4, 1)], [("11", "p1", 11, 0)])
    assert rows_of(table, "3", "11", "x", "25", "none") == [
        ("25", "p2", 175),
        ("3", "p0", -3),
        ("3", "p2", -30),
        ("x", "p9", 1),
    ]
    assert rows_of(table) == []


def test_row_groups_whose_statistics_exclude_all_values_are_not_read(table: WrittenTable) -> None:
    break_files(table, "p0", "p2")
    assert rows_of(table, "12", "15", values={"id": {12, 15}}) == [("12", "p1", 84), ("15", "p1", 105)]
    # The ends of a range belong to it.
    assert rows_of(table, "10", values={"id": {10}}) == [("10", "p1", 70)]
    assert rows_of(table, "19", values={"id": {19}}) == [("19", "p1", 133)]
    # Between two values that are wanted there may be files with neither of them.
    break_files(table, "p1")
    assert rows_of(table, "-1", "30", values={"id": {-1, 30}}) == []
    with pytest.raises(OSError, match=r"."):
        rows_of(table, "12", values={"id": {12}})


@pytest.mark.parametrize("values", [{"id": {"12"}}, {"id": {datetime.date(2024, 1, 1)}}, {"id": set()}, {"gone": {1}}])
def test_values_that_cannot_be_compared_exclude_nothing(table: WrittenTable, values: dict[str, set[object]]) -> None:
    assert rows_of(table, "12", values=values) == [("12", "p1", 84)]


def test_a_row_group_with_a_null_or_without_statistics_is_read(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", COLUMNS, "p").create()
    table.upsert([("a", "x", None, 1)])
    assert rows_of(table, "a", values={"id": {5}}) == [("a", "x", 1)]


def test_only_the_buckets_of_the_keys_are_read(tmp_path: Path) -> None:
    table = WrittenTable(tmp_path / "t", COLUMNS, "p", buckets=4).create()
    keys = [f"k{number}" for number in range(20)]
    table.upsert([(key, "x", number, number) for number, key in enumerate(keys)])
    (bucket,) = buckets_of(["k7"], 4)
    for path in (table.root / "p=x").glob("*.parquet"):
        if not path.name.startswith(f"{bucket:08d}"):
            path.write_bytes(b"")
    assert rows_of(table, "k7", buckets=4) == [("k7", "x", 7)]
    with pytest.raises(pa.ArrowInvalid):
        rows_of(table, "k7")
    # Hudi hashes only a part of such a key.
    with pytest.raises(pa.ArrowInvalid):
        rows_of(table, "k7:1", buckets=4)


@pytest.mark.parametrize("buckets", [1, 4])
def test_a_file_group_of_another_index_is_read_although_its_random_id_begins_with_digits(
    tmp_path: Path, buckets: int
) -> None:
    table = WrittenTable(tmp_path / "t", COLUMNS, "p", buckets=99_999_999).create()
    (bucket,) = buckets_of(["some key"], 99_999_999)
    table.upsert([("some key", "x", 1, 7)])
    (path,) = (table.root / "p=x").glob("*.parquet")
    assert path.name.startswith(f"{bucket:08d}-") and bucket > buckets
    assert rows_of(table, "some key", buckets=buckets) == [("some key", "x", 7)]


def test_what_would_take_long_here_is_left_to_spark(table: WrittenTable, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_of(table, *map(str, range(key_lookup.MOST_KEYS + 1))) is None
    for name, limit in {"_MOST_FILES": 2, "_MOST_BYTES": 10}.items():
        with monkeypatch.context() as patch:
            patch.setattr(key_lookup, name, limit)
            assert rows_of(table, "1") is None
            # What statistics exclude is not counted.
            assert name == "_MOST_FILES" or rows_of(table, "1", values={"id": {-1}}) == []
    assert rows_of(table, "1") == [("1", "p0", 7)]


def test_tables_that_are_read_differently_are_left_to_spark(table: WrittenTable) -> None:
    (path,) = (table.root / "p=p1").glob("*.parquet")
    kept = path.read_bytes()
    pq.write_table(pq.ParquetFile(path).read().drop_columns("v"), path)
    assert rows_of(table, "12") is None
    path.write_bytes(kept)
    begun = table.root / ".hoodie" / "timeline" / "20990101000000000.commit.requested"
    begun.touch()
    assert rows_of(table, "12") is None
    begun.unlink()
    properties = table.root / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    properties.write_text(text.replace("COPY_ON_WRITE", "MERGE_ON_READ"))
    assert rows_of(table, "12") is None
    properties.write_text(text)
    assert rows_of(table, "12") == [("12", "p1", 84)]
