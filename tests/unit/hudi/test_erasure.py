"""Rows deleted for good, earlier versions removed, and the search for what is left: without a JVM."""

from __future__ import annotations

import gzip
import zipfile
from datetime import date
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sqlmesh_like.errors import NodeError, RetryableError
from sqlmesh_like.hudi.change_log import FOLDER
from sqlmesh_like.hudi.erasure.byte_search import Needles, find_rows, find_texts
from sqlmesh_like.hudi.erasure.delete_rows import delete_rows, undeletable_reason
from sqlmesh_like.hudi.erasure.old_versions import remove_old_versions, unremovable_reason
from sqlmesh_like.hudi.erasure.row_match import RowMatch
from sqlmesh_like.hudi.erasure.searched_files import files_below
from sqlmesh_like.hudi.history import LakeHistory
from sqlmesh_like.hudi.timeline import Timeline
from tests.levels import sample
from tests.written_table import WrittenTable

NAME = "Zoë Lovelace"


def table(root: Path, partition: str | None = None, ordering: tuple[str, ...] = ()) -> WrittenTable:
    columns = {"id": "int", "name": "string", "day": "string", "_sml_order": "long"}
    made = WrittenTable(root, columns, partition, buckets=2, ordering=ordering).create()
    made.upsert([(f"{n}", n, f"name {n}", f"d{n % 2}", 10 + n) for n in range(6)])
    made.upsert([("3", 3, NAME, "d1", 20)])
    return made


@pytest.mark.parametrize("ordering", [(), ("_sml_order",)])
@pytest.mark.parametrize("partition", [None, "day"])
def test_deleted_rows_are_in_no_file(partition: str | None, ordering: tuple[str, ...], tmp_path: Path) -> None:
    made = table(tmp_path / "t", partition, ordering)
    assert (made.root / FOLDER).is_dir()
    assert delete_rows(str(made.root), RowMatch(("ID",), [("3",), ("77",), ("no number",)])) == 1
    assert sorted(row[0] for row in made.rows()) == ["0", "1", "2", "4", "5"]
    assert list(find_texts(files_below(made.root), Needles([NAME]), made.root))
    assert remove_old_versions(str(made.root)) > 0
    assert (
        not list(find_texts(files_below(made.root), Needles([NAME]), made.root)) and not (made.root / FOLDER).exists()
    )
    assert not list(find_rows(files_below(made.root), RowMatch(("id",), [("3",)])))
    assert sorted(row[0] for row in made.rows()) == ["0", "1", "2", "4", "5"]
    made.upsert([("3", 3, "again", "d1", 1)])
    assert len(list(made.rows())) == 6


def test_without_such_rows_there_is_no_commit(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    before = made.timeline.names
    assert delete_rows(str(made.root), RowMatch(("id",), [("9",)])) == 0 and made.timeline.names == before
    assert delete_rows(str(tmp_path / "none"), RowMatch(("id",), [("9",)])) == 0


def test_a_key_of_two_columns_takes_exactly_its_rows(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    assert delete_rows(str(made.root), RowMatch(("id", "day"), [("1", "d1"), ("2", "d1"), ("4", "d0")])) == 2
    assert sorted(row[0] for row in made.rows()) == ["0", "2", "3", "5"]


def test_the_commit_repeats_what_the_next_writer_looks_for(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    assert delete_rows(str(made.root), RowMatch(("id",), [("3",)]), ("by",)) == 1
    assert next(made.timeline.newest_first()).extra["sml.by"] == "test"


def test_an_incomplete_write_and_what_keeps_old_rows_are_refused(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    uri, timeline = str(made.root), made.root / ".hoodie" / "timeline"
    pending = timeline / "20990101000000000.commit.requested"
    pending.touch()
    assert undeletable_reason(Timeline(uri)) is None
    with pytest.raises(NodeError, match="has not completed"):
        delete_rows(uri, RowMatch(("id",), [("3",)]))
    with pytest.raises(RetryableError, match="has not completed"):
        remove_old_versions(uri)
    pending.unlink()
    (timeline / "20990101000000000_20990101000000001.savepoint").touch()
    assert "savepoint" in (unremovable_reason(Timeline(uri)) or "")


def test_a_consumer_that_has_not_read_the_commits_is_to_be_rebuilt(tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    start = made.frontier
    delete_rows(str(made.root), RowMatch(("id",), [("3",)]))
    assert LakeHistory().unreadable_reason(str(made.root), start, made.frontier) is None
    remove_old_versions(str(made.root))
    assert "were cleaned" in (LakeHistory().unreadable_reason(str(made.root), start, made.frontier) or "")
    assert LakeHistory().unreadable_reason(str(made.root), made.frontier, made.frontier) is None


def test_a_partition_without_files_leaves_no_name(tmp_path: Path) -> None:
    made = table(tmp_path / "t", "day")
    empty = made.root / f"day={NAME}"
    empty.mkdir()
    (empty / ".hoodie_partition_metadata").write_text("x")
    remove_old_versions(str(made.root))
    assert not empty.exists() and (made.root / "day=d1").is_dir()


def contents(folder: Path) -> dict[str, Path]:
    """A file of each kind that has the name."""
    nested = pa.array([[{"who": NAME}]], pa.list_(pa.struct([("who", pa.string())])))
    coded = pa.array([NAME]).dictionary_encode()
    pairs = pa.array([[("k", NAME)]], pa.map_(pa.string(), pa.string()))
    for name, column in {
        "nested": nested,
        "dictionary": coded,
        "map": pairs,
        "bytes": pa.array([NAME.encode()]),
    }.items():
        pq.write_table(pa.table({"x": column}), folder / f"{name}.parquet", compression="zstd")
    footer = pa.table({"x": [1]}).replace_schema_metadata({"note": NAME})
    pq.write_table(footer, folder / "footer.parquet")
    (folder / "text.json").write_text('{"n": "Zo\\u00eb Lovelace"}')
    (folder / "log.gz").write_bytes(gzip.compress(NAME.encode()))
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("member", f"{NAME} " * 10)
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "string"}]}
    with (folder / "commit.avro").open("wb") as file:
        fastavro.writer(file, schema, [{"n": f"{NAME} " * 10}], codec="deflate")
    (folder / "n=Zo%C3%AB%20Lovelace").touch()
    (folder / "long.txt").write_bytes(b"-" * (8 * 1024**2 - 3) + NAME.encode())
    return {path.name: path for path in folder.iterdir()}


def test_a_text_is_found_in_any_encoding(tmp_path: Path) -> None:
    paths = contents(tmp_path)
    (tmp_path / "other.json").write_text('{"n": "Zoe"}')
    assert {each.path for each in find_texts(files_below(tmp_path), Needles([NAME]), tmp_path)} == set(paths.values())
    assert not list(find_texts(files_below(tmp_path), Needles(["nobody at all"]), tmp_path))


@sample("place", range(-16, 2), every=6)
def test_a_part_of_a_longer_key_is_told_from_the_key(place: int, tmp_path: Path) -> None:
    before = b"-" * (8 * 1024**2 + place)  # the end of the first piece is somewhere in the texts
    needles = Needles(["CUST-1"], {"CUST-1": ["CUST-12", "A CUST-12", "CUST-1CUST-1"]})
    for text, count in {
        "CUST-12": 0,
        "a CUST-12, CUST-12": 0,
        "CUST-12CUST-13": 1,
        "CUST-1CUST-1": 0,
        "CUST-1": 1,
        "CUST-12024": 1,
        "xCUST-12": 1,
    }.items():
        (tmp_path / "x").write_bytes(before + text.encode() + b"-" * 40)
        assert len(list(find_texts([tmp_path / "x"], needles, tmp_path))) == count, text


def test_a_key_before_another_value_is_told_from_a_longer_key(tmp_path: Path) -> None:
    needles = Needles(["CUST-1"], {"CUST-1": ["CUST-12"]})
    for number, (value, count) in enumerate(
        {"CUST-12024-01-01": 1, "12CUST-12": 1, "12:CUST-12,d": 0, "CUST-12": 0}.items()
    ):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"x": [value]}), path)
        assert len(list(find_texts([path], needles, tmp_path))) == count, value
    # A database's file has its values side by side, which are searched one by one elsewhere.
    (tmp_path / "db").write_bytes(b"CUST-12north")
    assert list(find_texts([tmp_path / "db"], needles, tmp_path, are_binary=True)) == []
    assert len(list(find_texts([tmp_path / "db"], needles, tmp_path))) == 1


def test_a_longer_key_counts_in_no_kind_of_file(tmp_path: Path) -> None:
    paths = contents(tmp_path)
    longer = Needles(["Lovelace"], {"Lovelace": [NAME]})
    assert list(find_texts(files_below(tmp_path), longer, tmp_path)) == []
    assert {each.path for each in find_texts(files_below(tmp_path), Needles(["Lovelace"]), tmp_path)} == set(
        paths.values()
    )


def test_the_folder_that_has_the_lake_is_no_finding(tmp_path: Path) -> None:
    root = tmp_path / NAME / "warehouse"
    root.mkdir(parents=True)
    (root / "a.txt").write_text("nothing")
    assert not list(find_texts(files_below(root), Needles([NAME]), root))
    assert not list(find_texts(files_below(root), Needles([NAME]), tmp_path / "elsewhere"))


def test_a_broken_file_is_searched_as_bytes(tmp_path: Path) -> None:
    for name, start in {"a.parquet": b"PAR1", "b.gz": b"\x1f\x8b", "c.zip": b"PK\x03\x04", "d": b"Obj\x01"}.items():
        (tmp_path / name).write_bytes(start + NAME.encode())
    assert len(list(find_texts(files_below(tmp_path), Needles([NAME]), tmp_path))) == 4


def test_rows_are_compared_in_the_type_of_the_column(tmp_path: Path) -> None:
    rows = pa.table({"day": [date(2024, 5, 1)], "big": pa.array([7], pa.int64()), "text": ["07"]})
    pq.write_table(rows, tmp_path / "a.parquet")
    (tmp_path / "note.txt").write_text("7")

    def is_there(column: str, text: str) -> bool:
        return bool(list(find_rows(files_below(tmp_path), RowMatch((column,), [(text,)]))))

    assert is_there("day", "2024-05-01") and is_there("big", "7") and is_there("text", "07")
    assert not is_there("text", "7") and not is_there("big", "x") and not is_there("none", "7")


@pytest.mark.parametrize(("name", "is_removed"), [("merged", True), ("newer", False), ("unknown", False)])
def test_a_log_file_goes_only_where_a_base_file_has_its_rows(name: str, is_removed: bool, tmp_path: Path) -> None:
    made = table(tmp_path / "t")
    base = next(path for path in sorted(made.timeline.data_files, reverse=True)).split("_")
    file_id, instant = base[0], "20200101000000000" if name == "merged" else "20990101000000000"
    log = made.root / f".{'x' if name == 'unknown' else file_id}_{instant}.log.1_0-1-2"
    log.touch()
    if is_removed:
        remove_old_versions(str(made.root))
    else:
        with pytest.raises(NodeError, match="rows in log files"):
            remove_old_versions(str(made.root))
    assert log.exists() is not is_removed
