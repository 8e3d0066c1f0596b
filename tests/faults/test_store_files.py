"""Stores as folders and files, on a real S3 server and HDFS: what readers of timelines, rows and notes ask of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import fsspec
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from sqlmesh_like.errors import MachineError
from sqlmesh_like.hudi.storage import Folder, folder
from sqlmesh_like.hudi.stores.range_files import RangeFiles
from sqlmesh_like.hudi.stores.store_client import use_store
from sqlmesh_like.hudi.timeline import Timeline
from tests.services.proxy import proxy_of
from tests.services.s3 import S3Server
from tests.services.stores import ONLY_S3, Server
from tests.services.stores import server as server


@pytest.fixture
def place(server: Server, tmp_path: Path) -> Folder:
    """A folder in a bucket of its own."""
    bucket = f"files-{abs(hash(tmp_path)) % 10**12}"
    server.make_bucket(bucket)
    use_store(f"{server.uri(bucket)}/w", server.settings())
    return folder(f"{server.uri(bucket)}/w/t")


def write(place: Folder, name: str, content: bytes) -> None:
    with place.fs.open(f"{place.path}/{name}", "wb") as file:
        file.write(content)


def test_a_folder_of_a_store_is_listed_read_moved_and_removed(place: Folder) -> None:
    assert not place.is_local and place.names() == [] and not place.exists() and place.files() == []
    place.fs.makedirs(place.path, exist_ok=True)
    for name, content in (("a.json", b"1"), ("p=1/b.json.new", b"22"), ("p=2/ü %20.json", b"333")):
        write(place, name, content)
    assert sorted(place.names()) == ["a.json", "p=1", "p=2"]
    assert place.exists() and place.exists("a.json") and place.exists("p=1") and not place.exists("p")
    assert place.sizes() == {"a.json": 1, "p=1/b.json.new": 2, "p=2/ü %20.json": 3}
    assert (place.read("p=2/ü %20.json"), place.fs.info(f"{place.path}/a.json")["size"]) == (b"333", 1)
    assert place.fs.glob(f"{place.path}/*/*.json") == [f"{place.path}/p=2/ü %20.json"]
    place.fs.mv(f"{place.path}/p=1/b.json.new", f"{place.path}/p=1/b.json")
    assert sorted(place.files()) == ["a.json", "p=1/b.json", "p=2/ü %20.json"]
    with pytest.raises(FileNotFoundError):
        place.read("none.json")
    place.fs.rm(f"{place.path}/p=2", recursive=True)
    place.fs.rm(place.path, recursive=True)
    assert place.names() == []


def test_rows_and_lines_of_a_store_are_read(place: Folder) -> None:
    rows = pa.table({"id": range(1000)})
    with place.fs.open(f"{place.path}/x.parquet", "wb") as file:
        parquet.write_table(rows, file, row_group_size=100)
    assert dataset.dataset([f"{place.path}/x.parquet"], filesystem=place.fs).to_table().equals(rows)
    assert Timeline(place.uri).count("x.parquet") == 1000
    write(place, "x.csv", b"id\n1\n")
    with fsspec.core.OpenFile(place.fs, f"{place.path}/x.csv", "rt") as lines:
        assert list(lines) == ["id\n", "1\n"]


@ONLY_S3
def test_a_table_is_looked_up_with_few_requests(place: Folder, server: S3Server) -> None:
    write(place, ".hoodie/hoodie.properties", b"hoodie.table.type=COPY_ON_WRITE\n")
    with proxy_of(server.port) as proxy:
        settings = server.settings(proxy.endpoint)
        use_store(place.uri, settings)
        timeline = Timeline(place.uri)
        assert timeline.is_cow and timeline.names == frozenset()
        assert len(proxy.requests) == 2, "a listing of the timeline and the properties"


@ONLY_S3
def test_a_bucket_that_is_gone_is_no_empty_table(place: Folder) -> None:
    gone = folder(place.uri.replace(place.path.partition("/")[0], "gone-too"))
    with pytest.raises(MachineError, match="there is no such bucket"):
        gone.names()
    with pytest.raises(MachineError, match="there is no such bucket"):
        gone.read("a.json")


def test_duckdb_reads_the_ranges_that_a_query_needs_and_nothing_over_the_bound(place: Folder) -> None:
    rows = pa.table({"id": range(60_000), "text": [f"{n:040d}" for n in range(60_000)]})
    for name, some in (("[p]=*/x.parquet", rows), ("y.parquet", rows.slice(0, 10))):
        with place.fs.open(f"{place.path}/{name}", "wb") as file:
            parquet.write_table(some, file, row_group_size=1000, compression="none", use_dictionary=False)
    x, y = place.data_path("[p]=*/x.parquet"), place.data_path("y.parquet")
    fetched: list[int] = []

    class Counted(RangeFiles):
        def _count(self, size: int) -> None:
            fetched.append(size)
            super()._count(size)

    with closing(duckdb.connect()) as db:
        db.register_filesystem(Counted())
        query = f"SELECT count(*), min(text) FROM read_parquet(['{x}', '{y}']) WHERE id = 4000"
        assert db.execute(query).fetchall() == [(1, f"{4000:040d}")]
        assert len(fetched) == 3, "the ends of two files, and the columns of a row group"
        assert sum(fetched) < place.data_sizes(["[p]=*/x.parquet"])[0] / 10
    with closing(duckdb.connect()) as db:
        db.register_filesystem(RangeFiles(most=200_000))
        assert db.execute(f"SELECT count(*) FROM read_parquet('{y}')").fetchall() == [(10,)]
        with pytest.raises(duckdb.Error, match="would be fetched here"):
            db.execute(f"SELECT sum(length(text)) FROM read_parquet('{x}')")
