"""Files of object stores by ranges: few requests, a bound, and errors in words. On obstore's own store in memory."""

from __future__ import annotations

import io
from pathlib import Path

import duckdb
import obstore
import pytest
from obstore import exceptions
from obstore.store import MemoryStore

from sqlmesh_like.errors import MachineError, NodeError, RetryableError
from sqlmesh_like.hudi.stores import conditional_file, range_files, store_client
from sqlmesh_like.hudi.stores.conditional_file import ConditionalFile
from sqlmesh_like.hudi.stores.range_files import RangeFiles
from sqlmesh_like.hudi.stores.store_client import STORE_PREFIX, delete_files, failing, put_content, put_file
from sqlmesh_like.names import TableName
from sqlmesh_like.project.nodes import Target
from sqlmesh_like.releases.release import ReleasedTable, Releases
from sqlmesh_like.releases.release_file import StoredReleases, release_file

LARGE = bytes(range(256)) * 1024
"""256 kB: the end of it is not all of it."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    memory = MemoryStore()
    for module in (range_files, store_client, conditional_file):
        monkeypatch.setattr(module, "client_of", lambda _uri: memory)
    memory.put("w/a.bin", LARGE)
    memory.put("w/small.bin", b"small")
    return memory


def path(name: str) -> str:
    return f"{STORE_PREFIX}s3://bucket/w/{name}"


def test_a_file_is_read_from_its_end_and_in_ranges(store: MemoryStore) -> None:
    files = RangeFiles()
    assert files.size(path("a.bin")) == len(LARGE) and files.modified(path("a.bin")).tzinfo is not None
    store.delete("w/small.bin")
    assert files.range(path("a.bin"), len(LARGE) - 9, len(LARGE)) == LARGE[-9:], "which came with the size"
    assert files.range(path("a.bin"), 5, 700) == LARGE[5:700]
    with files.open(path("a.bin")) as file:
        assert file.readable() and file.seekable()
        assert (file.seek(-4, io.SEEK_END), file.read(), file.read()) == (len(LARGE) - 4, LARGE[-4:], b"")
        assert (file.seek(2), file.seek(3, io.SEEK_CUR), file.read(4)) == (2, 5, LARGE[5:9])
        buffer = bytearray(3)
        assert (file.readinto(buffer), bytes(buffer)) == (3, LARGE[9:12])
        file.seek(0)
        assert file.readall() == LARGE
    with pytest.raises(OSError, match="is read only"):
        files.open(path("a.bin"), "wb")


def test_what_is_there_is_asked_once(store: MemoryStore) -> None:
    files = RangeFiles()
    assert files.info(path("small.bin")) == {"name": path("small.bin"), "size": 5, "type": "file"}
    assert files.sizes([path("small.bin"), path("none.bin"), path("a.bin")]) == [5, 0, len(LARGE)]
    assert not files.isfile(path("none.bin")) and files.glob(path("day=*/a")) == [path("day=*/a")]
    store.delete("w/small.bin")
    assert files.exists(path("small.bin"))
    files.forget()
    assert not files.exists(path("small.bin"))


def test_no_more_is_fetched_than_a_reader_may(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    files = RangeFiles(most=200 * 1024)
    files.size(path("a.bin"))
    with pytest.raises(OSError, match="more than 0 MB of a store would be fetched here"):
        files.range(path("a.bin"), 0, 100 * 1024)
    monkeypatch.setattr(range_files, "_MOST_FILES", 1)
    with pytest.raises(OSError, match="2 files of a store would be opened here"):
        files.sizes([path("a.bin"), path("small.bin")])
    monkeypatch.setattr(range_files, "_MOST_FILES", 2)
    monkeypatch.setattr(range_files, "_KEPT", 1)
    files = RangeFiles()
    files.sizes([path("a.bin"), path("small.bin")])
    assert len(files._ends) == 1


def test_duckdb_reads_parquet_by_them(store: MemoryStore, tmp_path: Path) -> None:
    with duckdb.connect() as db:
        db.execute(f"copy (select range as a from range(1000)) to '{tmp_path}/f.parquet' (format parquet)")
        put_file("s3://bucket/w/f.parquet", tmp_path / "f.parquet")
        db.register_filesystem(RangeFiles())
        assert db.execute(f"select sum(a) from read_parquet('{path('f.parquet')}')").fetchall() == [(499500,)]


def test_files_are_deleted_though_some_are_gone(store: MemoryStore) -> None:
    put_content("s3://bucket/w/b.bin", b"b")
    delete_files("s3://bucket/w", [])
    delete_files("s3://bucket/w", ["a.bin", "none.bin", "b.bin"])
    assert [each["path"] for page in obstore.list(store) for each in page] == ["w/small.bin"]


def test_releases_on_a_store_are_replaced_only_as_they_were_seen(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = release_file(Target("p", "t", "spark", warehouse="s3a://bucket/w"), "shop")
    assert isinstance(releases, StoredReleases) and releases.read() == Releases()
    tables = {"model.p.a": ReleasedTable(str(TableName("dws", "a")), "1")}
    turns = []

    def edit(before: Releases) -> Releases:
        turns.append(before.current)
        if len(turns) == 1:  # another call is faster
            releases.change(lambda seen: seen.with_release(tables, "run", "2024-01-01T00:00:00Z"))
        return before.with_release(tables, "run", "2024-01-02T00:00:00Z")

    assert releases.change(edit).current == 2 and turns == [None, 1]
    assert [each.id for each in releases.read().listed] == [1, 2]
    assert releases.change(lambda seen: seen).current == 2
    monkeypatch.setattr(ConditionalFile, "replace", lambda *_: None)
    with pytest.raises(RetryableError, match="other calls were faster 20 times"):
        releases.change(lambda seen: seen.with_release(tables, "run", "2024-01-03T00:00:00Z"))
    alone = StoredReleases(releases.uri, has_conditions=False)
    assert alone.change(lambda seen: seen.with_release(tables, "run", "2024-01-03T00:00:00Z")).current == 3


ANSWERS = [
    ("Generic S3 error: <Code>NoSuchBucket</Code>", MachineError, "s3://bucket/x: there is no such bucket"),
    (
        "Client error with status 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code><Message>m</Message>",
        MachineError,
        "s3://bucket/x: access is denied: SignatureDoesNotMatch: m",
    ),
    ("no credential providers", MachineError, "access is denied: no credentials, or not allowed"),
    (
        "error sending request for url https://u:p@host:9000/b?X-Amz-Signature=s HTTP error",
        MachineError,
        "s3://bucket/x: the store does not answer at https://host:9000",
    ),
    ("operation timed out", MachineError, "s3://bucket/x: the store does not answer"),
    ("Server error 500: <Code>InternalError</Code>", NodeError, "s3://bucket/x: the store failed: InternalError"),
    ("odd\nand more", NodeError, "s3://bucket/x: the store failed: odd"),
    ("", NodeError, "the store failed: no reason is given"),
]


@pytest.mark.parametrize(("text", "kind", "message"), ANSWERS)
def test_what_a_store_answers_is_said_in_words(text: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught, failing("s3://bucket/x"):
        raise exceptions.GenericError(text)
    assert str(caught.value).splitlines()[0].endswith(message) and "Signature=s" not in str(caught.value)


def test_what_is_no_failure_of_the_store_stays_what_it_is() -> None:
    for error in (FileNotFoundError("x"), exceptions.AlreadyExistsError("x"), ValueError("x"), MemoryError()):
        with pytest.raises(type(error)), failing("s3://bucket/x"):
            raise error
    with pytest.raises(MachineError, match="no such bucket"), failing("s3://bucket/x"):
        raise FileNotFoundError("NoSuchBucket")
