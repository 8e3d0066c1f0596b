"""Which folders are tables that were never finished, and that nothing with a commit is ever removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlmesh_like.errors import NodeError
from sqlmesh_like.hudi.unfinished_table import clear_unfinished, clear_without_commit, rows_without_commit

WHOLE = (
    "#Properties saved on 2024-01-01\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=9\n"
    "hoodie.table.checksum=1747164488\nhoodie.table.name=t\nhoodie.timeline.path=timeline\n"
)
BASE_FILE = "p=1/0000-aa_0-15-189_20240101000000000.parquet"
LOG_FILE = "p=1/.0000-aa_20240101000000000.log.1_0-30-378"
COMMIT = "timeline/20240101000000000_20240101000001000.commit"


def made(root: Path, *files: str, properties: str | None = None, **others: str) -> str:
    (root / ".hoodie" / "timeline").mkdir(parents=True)
    if properties is not None:
        (root / ".hoodie" / "hoodie.properties").write_text(properties)
    for path in [*files, *others]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(others.get(path, ""))
    return str(root)


CUT_SHORT = [None, "", "#Properties saved", WHOLE[:90], WHOLE[:-1], WHOLE.replace("hoodie.table.name=t\n", "")]


@pytest.mark.parametrize("properties", CUT_SHORT)
@pytest.mark.fault("a table was only half created", ends="recovers")
def test_what_was_never_finished_is_removed(properties: str | None, tmp_path: Path) -> None:
    pending = ".hoodie/timeline/20240101000000000.commit.inflight"
    mark = "p=1/.hoodie_partition_metadata"
    assert clear_unfinished(made(tmp_path / "t", pending, BASE_FILE, LOG_FILE, mark, properties=properties))
    assert not (tmp_path / "t").exists()


def test_no_folder_and_a_folder_without_a_table_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.parquet").touch()
    assert not clear_unfinished(str(tmp_path / "plain")) and not clear_unfinished(str(tmp_path / "none"))
    assert (tmp_path / "plain" / "a.parquet").exists()


@pytest.mark.parametrize("files", [(), (BASE_FILE,), (f".hoodie/{COMMIT}", BASE_FILE)])
def test_a_table_with_whole_properties_stays_whatever_it_holds(files: tuple[str, ...], tmp_path: Path) -> None:
    uri = made(tmp_path / "t", *files, properties=WHOLE)
    assert not clear_unfinished(uri)
    assert all((tmp_path / "t" / path).exists() for path in files)


@pytest.mark.fault("a table was only half created", ends="recovers")
def test_a_whole_backup_is_what_hudi_goes_on_with(tmp_path: Path) -> None:
    uri = made(tmp_path / "t", **{".hoodie/hoodie.properties.backup": WHOLE}, properties="")
    assert not clear_unfinished(uri)


COMMITTED = [
    COMMIT,
    COMMIT.replace(".commit", ".replacecommit"),
    COMMIT.replace(".commit", ".deltacommit"),
    "20240101000000.commit",
    "timeline/history/20240101_20240102_0.parquet",
    "archived/.commits_.archive.1",
    "metadata/files/a.hfile",
]


@pytest.mark.parametrize("path", COMMITTED)
@pytest.mark.fault("the properties of a table with commits are broken", ends="refuses")
def test_broken_properties_of_a_table_with_commits_are_an_error_and_nothing_is_removed(
    path: str, tmp_path: Path
) -> None:
    uri = made(tmp_path / "t", f".hoodie/{path}", BASE_FILE, properties="")
    with pytest.raises(NodeError, match="cut short, and the table has commits") as error:
        clear_unfinished(uri)
    assert "backup" in (error.value.hint or "")
    assert (tmp_path / "t" / BASE_FILE).exists() and (tmp_path / "t" / ".hoodie" / path).exists()


@pytest.mark.parametrize("path", ["notes.txt", "p=1/part-00000-abc.snappy.parquet", "data.parquet"])
@pytest.mark.fault("a half-created table has files that are not Hudi's", ends="refuses")
def test_files_that_are_not_hudis_are_never_removed(path: str, tmp_path: Path) -> None:
    uri = made(tmp_path / "t", path, BASE_FILE)
    with pytest.raises(NodeError, match=f"{path} is not a file of Hudi's"):
        clear_unfinished(uri)
    assert (tmp_path / "t" / path).exists() and (tmp_path / "t" / ".hoodie").exists()


def test_rows_of_a_table_that_lost_its_timeline_are_seen(tmp_path: Path) -> None:
    pending = ".hoodie/timeline/20240101000000000.commit.inflight"
    crc = ("p=1/.0000-aa_0-15-189_20240101000000000.parquet.crc", "p=1/..hoodie_partition_metadata.crc")
    lost = [made(tmp_path / f"lost{n}", file, *crc, properties=WHOLE) for n, file in enumerate((BASE_FILE, LOG_FILE))]
    assert [rows_without_commit(uri) for uri in lost] == [BASE_FILE, LOG_FILE]
    assert rows_without_commit(made(tmp_path / "under way", BASE_FILE, LOG_FILE, pending, properties=WHOLE)) is None
    for number, path in enumerate(COMMITTED):
        uri = made(tmp_path / f"t{number}", f".hoodie/{path}", BASE_FILE, properties=WHOLE)
        assert rows_without_commit(uri) is None
    assert rows_without_commit(str(tmp_path / "nothing")) is None
    unfinished = made(tmp_path / "unfinished", BASE_FILE, *crc, properties=WHOLE[:90])
    assert rows_without_commit(unfinished) is None and clear_unfinished(unfinished)
    clear_without_commit(lost[0])
    assert not Path(lost[0]).exists()
    (Path(lost[1]) / "notes.txt").touch()
    with pytest.raises(NodeError, match=r"notes.txt is not a file of Hudi's"):
        clear_without_commit(lost[1])
    assert (Path(lost[1]) / LOG_FILE).exists()
